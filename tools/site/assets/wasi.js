/* Runs a program for WASI that reads standard input and writes standard output, with no other file.
 *
 *     const { status, out, err } = cai_run(module, ["--lint"], "{'shape': ...}\n");
 *
 * module: a WebAssembly.Module. It is started anew each time. */
globalThis.cai_run = (module, options, input) => {
  const BAD_FILE = 8, ILLEGAL_SEEK = 70, NOT_SUPPORTED = 58, CHARACTER_DEVICE = 2;
  const encoder = new TextEncoder();
  const args = ["cai_inspect", ...options].map((each) => encoder.encode(each + "\0"));
  const stdin = encoder.encode(input);
  const written = [[], [], []];
  let at = 0;
  let memory;

  const bytes = () => new Uint8Array(memory.buffer);
  const view = () => new DataView(memory.buffer);

  /* The buffers of a read or a write: pairs of address and length */
  const buffers = (list, count) => Array.from({ length: count }, (_, i) => {
    const start = view().getUint32(list + 8 * i, true);
    return bytes().subarray(start, start + view().getUint32(list + 8 * i + 4, true));
  });

  const wasi = {
    args_sizes_get(count, size) {
      view().setUint32(count, args.length, true);
      view().setUint32(size, args.reduce((sum, each) => sum + each.length, 0), true);
      return 0;
    },
    args_get(pointers, text) {
      for (const each of args) {
        view().setUint32(pointers, text, true);
        bytes().set(each, text);
        pointers += 4;
        text += each.length;
      }
      return 0;
    },
    fd_read(file, list, count, size) {
      if (file !== 0) return BAD_FILE;
      const from = at;
      for (const buffer of buffers(list, count)) {
        const part = stdin.subarray(at, at + buffer.length);
        buffer.set(part);
        at += part.length;
      }
      view().setUint32(size, at - from, true);
      return 0;
    },
    fd_write(file, list, count, size) {
      if (file !== 1 && file !== 2) return BAD_FILE;
      const parts = buffers(list, count).map((each) => each.slice());
      written[file].push(...parts);
      view().setUint32(size, parts.reduce((sum, each) => sum + each.length, 0), true);
      return 0;
    },
    fd_fdstat_get(file, result) {
      if (file > 2) return BAD_FILE;
      bytes().fill(0, result, result + 24);
      bytes()[result] = CHARACTER_DEVICE;
      return 0;
    },
    fd_close: () => 0,
    fd_seek: () => ILLEGAL_SEEK,
    fd_prestat_get: () => BAD_FILE, /* there are no folders */
    proc_exit(status) {
      throw { exit: status };
    },
  };
  for (const { name } of WebAssembly.Module.imports(module)) wasi[name] ??= () => NOT_SUPPORTED;

  const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: wasi });
  memory = instance.exports.memory;
  let status = 0;
  try {
    instance.exports._start();
  } catch (reason) {
    if (reason.exit === undefined) throw reason;
    status = reason.exit;
  }
  const text = (parts) => { /* a character may be cut at the end of a part */
    const decoder = new TextDecoder();
    return parts.map((each) => decoder.decode(each, { stream: true })).join("") + decoder.decode();
  };
  return { status, out: text(written[1]), err: text(written[2]) };
};
