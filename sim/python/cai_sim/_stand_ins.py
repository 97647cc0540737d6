# SPDX-License-Identifier: MIT
"""Stand-ins for cuBLAS, cuBLASLt, cuRAND, cuFFT and cuDNN, whose own ones have a static CUDA runtime.

The functions are in libcai_libraries.so (sim/libraries): cai_lib_NAME for each NAME that is served. For each such library
that is installed, a shared object is written that has its name and all names that it exports, and no more than a jump
behind each: to the function that serves it, to cai_lib_opaque if it computes, or to cai_lib_missing. It is loaded before
the first GPU library. Who asks for libcublas.so.13 then, gets this one, and versions may change without a new list."""

from __future__ import annotations

import ctypes
import os
import pathlib
import platform
import re
import struct
import sys
import tempfile
from typing import Iterator, NamedTuple

from ._sites import distribution_of

COMMON = "libcai_libraries.so"
PREFIX = "cai_lib_"
# With the number for its version. Of CUPTI nothing is served: it does not go on without tables of NVIDIA's driver.
LIBRARIES = {"cublasLt": 0, "cublas": 0, "curand": 1, "cufft": 2, "cudnn": 3, "cupti": -1}
# What computes with a handle in front, and gives back no size and no status of its own: a launch whose accesses are not
# known.
COMPUTES = re.compile(
    r"""cublas(?!Lt|Xt|Create|Destroy|Set|Get|Log|Xerbla|Alloc|Free|Init|Shutdown|MigrateCompute)
    (?!.*(getrf|getri|getrs|matinv|geqrf|gels)) [A-Z]\w*
    (_v2|Batched|Ex|tpttr|trttp|gemm3m|gemmt|syrkx|herkx|trmm|symm|hemm|trsm) (_64)?$""",
    re.X,
)
STB_GLOBAL, STT_FUNC, SHN_ABS = 1, 2, 0xFFF1
EM_X86_64 = 62
GLOB_DAT = 6  # R_X86_64_GLOB_DAT
PAGE = 0x1000
ROWS = 16  # at most, of the dynamic section
loaded: list[str] = []  # what is loaded, by soname


class Exports(NamedTuple):
    names: list[str]
    version: str  # of the symbols, or ""


def exports(file: str | os.PathLike[str]) -> Exports:
    """The functions that a shared object exports."""
    with open(file, "rb") as data:
        header = data.read(64)
        if header[:6] != b"\x7fELF\x02\x01":
            return Exports([], "")
        place, size, count = struct.unpack_from("<Q", header, 40)[0], *struct.unpack_from("<HH", header, 58)
        data.seek(place)
        table = data.read(size * count)
        sections = [struct.unpack_from("<IIQQQQIIQQ", table, size * index) for index in range(count)]
        symbols = next((one for one in sections if one[1] == 11), None)  # SHT_DYNSYM
        if symbols is None:
            return Exports([], "")
        text = sections[symbols[6]]
        data.seek(symbols[4])
        rows = data.read(symbols[5])
        data.seek(text[4])
        strings = data.read(text[5])
    names, version = [], ""
    for name, info, _, section, _, _ in struct.iter_unpack("<IBBHQQ", rows):
        if not section or info >> 4 != STB_GLOBAL:
            continue
        word = strings[name : strings.index(b"\0", name)].decode()
        if section == SHN_ABS:
            version = word  # each version has a symbol of its own
        elif info & 15 == STT_FUNC:
            names.append(word)
    return Exports(names, version)


def hash_of(name: str) -> int:
    """The hash of the System V ABI."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high
    return value & 0xFFFFFFFF


class Image:
    """A shared object for x86-64: each name of `targets` jumps to that function of libcai_libraries.so."""

    def __init__(self, soname: str, version: str, targets: dict[str, str]) -> None:
        self.soname, self.version, self.targets = soname, version, targets
        self.used = sorted(set(targets.values()))
        self.order = ["", *self.used, *targets]  # the symbols: first those of the other library
        self.texts: dict[str, int] = {}
        self.strings = b""
        for text in [*self.order, COMMON, soname, version]:
            if text not in self.texts:
                self.texts[text] = len(self.strings)
                self.strings += text.encode() + b"\0"
        self.at: dict[str, int] = {}
        place = 64 + 4 * 56
        for name, size in self.sizes().items():
            self.at[name] = place = (place + 15) // 16 * 16
            place += size
        self.end = place
        self.data = (place + PAGE - 1) // PAGE * PAGE
        self.slots = {name: self.data + 16 * ROWS + 8 * number for number, name in enumerate(self.used)}

    def sizes(self) -> dict[str, int]:
        count = len(self.order)
        return {"hash": len(self.hashes()), "symbols": 24 * count, "strings": len(self.strings), "versions": 2 * count,
                "definitions": 56, "relocations": 24 * len(self.used), "code": 16 * len(self.targets)}  # fmt: skip

    def hashes(self) -> bytes:
        count, first = len(self.order), 1 + len(self.used)
        heads, chain = [0] * count, [0] * count
        for index in range(first, count):
            bucket = hash_of(self.order[index]) % count
            heads[bucket], chain[index] = index, heads[bucket]
        return struct.pack(f"<{2 + 2 * count}I", count, count, *heads, *chain)

    def versions(self) -> bytes:
        return struct.pack(f"<{len(self.order)}H", 0, *[1] * len(self.used), *[2 if self.version else 1] * len(self.targets))

    def definitions(self) -> bytes:
        """The file's own name, and the version of its symbols."""
        rows = ((1, self.soname, 28), (2, self.version, 0))
        return b"".join(struct.pack("<HHHHIIIII", 1, number == 1, number, 1, hash_of(name), 20, behind, self.texts[name], 0)
                        for number, name, behind in rows)  # fmt: skip

    def symbols(self) -> bytes:
        function = STB_GLOBAL << 4 | STT_FUNC
        rows = [struct.pack("<IBBHQQ", self.texts[name], function, 0, 0, 0, 0) for name in self.used]
        rows += [struct.pack("<IBBHQQ", self.texts[name], function, 0, 1, self.at["code"] + 16 * number, 16)
                 for number, name in enumerate(self.targets)]  # fmt: skip
        return bytes(24) + b"".join(rows)

    def code(self) -> bytes:
        return b"".join(stub(self.at["code"] + 16 * number, self.at["strings"] + self.texts[name], self.slots[target],
                             target != PREFIX + name)
                        for number, (name, target) in enumerate(self.targets.items()))  # fmt: skip

    def relocations(self) -> bytes:
        return b"".join(struct.pack("<QQq", self.slots[name], number << 32 | GLOB_DAT, 0)
                        for number, name in enumerate(self.used, 1))  # fmt: skip

    def dynamic(self) -> bytes:
        rows = [(1, self.texts[COMMON]), (14, self.texts[self.soname]), (4, self.at["hash"]), (5, self.at["strings"]),
                (6, self.at["symbols"]), (10, len(self.strings)), (11, 24), (7, self.at["relocations"]),
                (8, 24 * len(self.used)), (9, 24)]  # fmt: skip
        if self.version:
            rows += [(0x6FFFFFF0, self.at["versions"]), (0x6FFFFFFC, self.at["definitions"]), (0x6FFFFFFD, 2)]
        return b"".join(struct.pack("<QQ", *row) for row in [*rows, (0, 0)])

    def headers(self, end: int) -> bytes:
        """Of the file, and of its parts: what is read and run, what is written, the dynamic section, the stack."""
        file = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, EM_X86_64, 1, 0, 64, 0, 0, 64, 56, 4, 64, 0, 0)
        parts = [(1, 5, 0, self.end, PAGE), (1, 6, self.data, end - self.data, PAGE),
                 (2, 6, self.data, len(self.dynamic()), 8), (0x6474E551, 6, 0, 0, 16)]  # fmt: skip
        return file + b"".join(struct.pack("<IIQQQQQQ", kind, flags, start, start, start, size, size, align)
                               for kind, flags, start, size, align in parts)  # fmt: skip

    def whole(self) -> bytes:
        out = bytearray(self.data + 16 * ROWS + 8 * len(self.used))
        blocks = {"hash": self.hashes(), "symbols": self.symbols(), "strings": self.strings, "versions": self.versions(),
                  "definitions": self.definitions() if self.version else b"", "relocations": self.relocations(),
                  "code": self.code()}  # fmt: skip
        for place, block in [(0, self.headers(len(out))), (self.data, self.dynamic())] + [
            (self.at[name], block) for name, block in blocks.items()
        ]:
            out[place : place + len(block)] = block
        return bytes(out)


def stub(here: int, name: int, slot: int, with_name: bool) -> bytes:
    """lea rsi, [name]; jmp [slot]. A function that serves one name gets its arguments as they are."""
    lead = b"\x48\x8d\x35" + struct.pack("<i", name - here - 7) if with_name else b""
    return (lead + b"\xff\x25" + struct.pack("<i", slot - here - len(lead) - 6)).ljust(16, b"\xcc")


def installed() -> Iterator[tuple[str, str, str]]:
    """(library, soname, file) of each one that is installed, the first of each soname."""
    toolkits = [os.environ.get("CUDA_PATH", ""), os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    folders = [folder for path in sys.path if path for folder in sorted(pathlib.Path(path).glob("nvidia/*/lib"))]
    folders += [pathlib.Path(path) for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path]
    folders += [pathlib.Path(toolkit, lib) for toolkit in toolkits if toolkit for lib in ("lib64", "lib")]
    folders += [pathlib.Path("/usr/lib/x86_64-linux-gnu")]
    seen = set()
    for folder in folders:
        for library in LIBRARIES:
            for file in sorted(folder.glob(f"lib{library}.so.*")):
                if re.fullmatch(r"lib\w+\.so\.\d+", file.name) and file.name not in seen:
                    seen.add(file.name)
                    yield library, file.name, str(file)


def version_of(file: str) -> int:
    """The version that the name or the package of a library says, or 0."""
    found = re.search(r"\.so\.(\d+)\.(\d+)\.(\d+)", os.path.realpath(file))
    found = found or re.search(r" (\d+)\.(\d+)\.(\d+)", distribution_of(file))
    return int(found[1]) * 1000000 + int(found[2]) * 1000 + int(found[3]) if found else 0


def target(name: str, served: set[str]) -> str:
    if PREFIX + name in served:
        return PREFIX + name
    return PREFIX + ("opaque" if COMPUTES.match(name) else "missing")


def load(folder: pathlib.Path) -> list[ctypes.CDLL]:
    """Loads the stand-ins for the libraries that are installed. Returns the library behind them, if it is there."""
    common = folder / COMMON
    if not common.exists() or platform.machine() != "x86_64":
        return []
    behind = ctypes.CDLL(str(common), ctypes.RTLD_GLOBAL)
    served = set(exports(common).names)
    with tempfile.TemporaryDirectory() as place:
        for library, soname, file in installed():
            found = exports(file)
            if not found.names:
                continue
            made = pathlib.Path(place, soname)
            made.write_bytes(Image(soname, found.version, {name: target(name, served) for name in found.names}).whole())
            ctypes.CDLL(str(made), ctypes.RTLD_GLOBAL)
            loaded.append(soname)
            behind.cai_libraries_version(LIBRARIES[library], version_of(file))
    return [behind]
