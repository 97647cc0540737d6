"""A race on purpose, for the recorder: CuPy reads on its stream what PyTorch still writes on another one.

    python3 -m cai_sim --record tests/gpu/race.py
"""

import cupy
import torch

SIZE, TURNS, CYCLES = 1 << 20, 5, 20_000_000

producer, consumer = torch.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)
torch.zeros(8, device="cuda")
torch.cuda.synchronize()
wrong = 0
for _ in range(TURNS):
    with torch.cuda.stream(producer):
        tensor = torch.zeros(SIZE, device="cuda")
        torch.cuda._sleep(CYCLES)
        tensor += 1
    with consumer:
        total = cupy.asnumpy(cupy.asarray(tensor), stream=consumer).sum()
        wrong += int(total != SIZE)
print(f"wrong sums: {wrong} of {TURNS}")
