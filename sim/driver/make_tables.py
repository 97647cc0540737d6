#!/usr/bin/env python3
"""Makes the entry points of libcuda.so.1 from the headers of a CUDA toolkit.

    make_tables.py [--record] INCLUDE OUTPUT SOURCE...

Reads cuda.h and the *Typedefs.h of the folder INCLUDE. Writes to OUTPUT:
  driver_names.h      one declaration do_NAME for each function that can be implemented
  driver_entries.c    one exported function for each symbol, and the table of all symbols
A function is implemented if a SOURCE has a line "CUresult do_NAME(". Nothing of the headers is copied into the
project: the files are made at build time.

--record: the entry points of the recorder (record/record.c). Each calls the function of the real driver. Those that
FOLLOWED matches do the same in the simulation, with its own handles for those of the real driver. If a SOURCE has a
line "CUresult record_NAME(", the entry calls that function instead, with its number and the real function.
"""
import pathlib
import re
import sys

# These typedefs need the headers of other APIs. Their functions exist, and are not served.
FOREIGN = ("GL", "EGL", "VDPAU")
# Calls that queue work or wait for it: the place in the program is asked for.
QUEUES = re.compile(r"cu(Memcpy|Memset|MemPrefetch|MemAlloc|MemFree|MemHost|MemBatch|Launch|StreamWait|"
                    r"StreamWrite|StreamSync|StreamQuery|StreamAdd|StreamCreate|StreamDestroy|StreamBegin|StreamEnd|"
                    r"EventCreate|EventRecord|EventSync|EventQuery|EventDestroy|CtxCreate|CtxSync|CtxDestroy|"
                    r"Graph(Create|Destroy|Instantiate|ExecDestroy|Launch)|"
                    r"DevicePrimaryCtxRe|IpcOpen|IpcClose|ModuleLoad|LibraryLoad|ModuleGetGlobal|LibraryGetGlobal|"
                    r"LibraryGetManaged|MemUnmap|MemMap)")

BEFORE_INIT = re.compile(r"cu(Init|DriverGetVersion|GetProcAddress|GetError|GetExportTable|Profiler)")

# What the simulation of a recorder does again. The others change nothing that it has to know.
FOLLOWED = re.compile(
    r"cu(Init|Launch|Param|Mem(?!Advise|Prefetch|Get|PoolGet|PoolSetAttribute|PoolTrim|Range|HostGet)|"
    r"Ctx(Create|Destroy|Detach|DisablePeer|EnablePeer|PopCurrent|PushCurrent|SetCurrent|Synchronize)|"
    r"Device(PrimaryCtxRe|SetMemPool|GetMemPool|GetDefaultMemPool)|Event(Create|Destroy|Record|Synchronize|Query)|"
    r"Func(GetModule|SetBlockShape|SetSharedSize)|Graph(Create|Destroy|Exec(Destroy|Update)|Instantiate|Launch)|"
    r"Kernel(GetFunction|GetLibrary)|Library(Enumerate|Get(Kernel$|Module|Global|Managed)|Load|Unload)|"
    r"Module(Load|Unload|Enumerate|Get(Function$|Global))|"
    r"Stream(Create|Destroy|Wait|Synchronize|Query|AddCallback|BeginCapture|))")
# What the trace of a recorder lacks if it is called and not followed. All others are only passed on.
MATTERS = re.compile(r"cu(Array|Ctx(?!Get)|Event(?!Elapsed)|External|Graph(?!.*Get)|Green|Import|Ipc|Launch|Mem(?!.*Get)|"
                     r"Mipmapped|Multicast|Signal|Stream(?!Get)|Surf|Tex|Wait)")
# These end something, which the real driver may make again at once, in another thread: the simulation ends it first.
ENDS = re.compile(r"cu(\w*(Free|Destroy|Unregister|Unload|Unmap|Detach)|MemRelease|DevicePrimaryCtxRe(lease|set))")
# Handles, with what stands for one that is not known: the simulation then says that it is invalid.
HANDLES = {"CUcontext": 3, "CUstream": 3, "CUevent": 3, "CUmodule": 0, "CUfunction": 0, "CUlibrary": 0, "CUkernel": 0,
           "CUgraph": 3, "CUgraphExec": 3, "CUmemoryPool": 3, "CUmemGenericAllocationHandle_v1": 3}
# Those that a recorder looks at before the real driver does.
LOOKED = {"CUstream": "stream", "CUevent": "event", "CUgraph": "graph", "CUgraphExec": "executable graph"}
ADDRESSES = ("CUdeviceptr", "CUdeviceptr_v2")
FUNCTIONS = {"CUhostFn": "record_no_function", "CUstreamCallback": "record_no_callback"}


class Symbol:
    """One exported function."""

    def __init__(self, base, name, version, parameters, per_thread=None):
        self.base, self.name, self.version, self.parameters = base, name, version, parameters
        self.per_thread = per_thread  # the name of the function that it is the per-thread form of


def parameters_of(text):
    """[(declaration, name)], or None: "void" gives []."""
    text = " ".join(text.split())
    if text in ("", "void"):
        return []
    found = []
    for number, one in enumerate(text.split(",")):
        match = re.fullmatch(r"\s*(.*?)(\w+)\s*(\[\d*\])?\s*", one)
        if not match or not match[1].strip():
            return None
        found.append((f"{match[1]} a{number}{match[3] or ''}", f"a{number}"))
    return found


def read_typedefs(folder):
    """{base: {version: parameters}}, and {base: versions that have a per-thread form, with its suffix}."""
    plain, per_thread = {}, {}
    pattern = re.compile(r"PFN_(cu\w+?)_v(\d+)(_ptds|_ptsz)?\)\s*\(([^;]*)\)\s*;")
    for path in sorted(folder.glob("cuda*Typedefs.h")):
        if path.name.startswith("cuda_runtime"):
            continue
        foreign = any(path.name == f"cuda{word}Typedefs.h" for word in FOREIGN)
        for base, version, suffix, text in pattern.findall(path.read_text()):
            if suffix:
                per_thread.setdefault(base, {})[int(version)] = suffix
            else:
                plain.setdefault(base, {})[int(version)] = None if foreign else parameters_of(text)
    return plain, per_thread


def newest_numbers(text):
    """{base: 3}, if the header gives the name `base` to `base_v3`."""
    found = {}
    for base, target in re.findall(r"^\s*#\s*define\s+(cu\w+)\s+(?:__CUDA_API_PT\w\w\()?(cu\w+?)\)?\s*$", text, re.M):
        match = re.fullmatch(re.escape(base) + r"_v(\d)(?:_pt\w\w)?", target)
        if match:
            found[base] = max(int(match[1]), found.get(base, 1))
    return found


def symbols_of(folder):
    cuda = "".join((folder / name).read_text() for name in ("cuda.h", "cudaProfiler.h", "cudaGL.h", "cudaEGL.h")
                   if (folder / name).exists())
    plain, per_thread = read_typedefs(folder)
    newest = newest_numbers(cuda)
    symbols = {}
    for base, versions in plain.items():
        ordered = sorted(versions)
        last = newest.get(base, len(ordered))
        names = {}
        for place, version in enumerate(reversed(ordered)):
            number = last - place
            if number >= 1:
                names[version] = base if number == 1 else f"{base}_v{number}"
                symbols[names[version]] = Symbol(base, names[version], version, versions[version])
        for version, suffix in per_thread.get(base, {}).items():
            older = [one for one in ordered if one <= version and one in names]
            if older:
                target = names[older[-1]]
                name = target + suffix
                symbols[name] = Symbol(base, name, version, versions[older[-1]], target)
    for name in re.findall(r"CUresult\s+CUDAAPI\s+(cu\w+)\s*\(", cuda):  # declared without a typedef
        if name not in symbols and not re.search(r"_pt[sd][sz]$", name):
            symbols[name] = Symbol(re.sub(r"_v\d$", "", name), name, 0, None)
    return [symbols[name] for name in sorted(symbols)]


def errors_of(folder):
    """[("CUDA_ERROR_INVALID_VALUE", 1)]"""
    text = (folder / "cuda.h").read_text()
    text = text[:text.index("} CUresult;")]
    text = text[text.rindex("typedef enum"):]
    return re.findall(r"^\s*(CUDA_\w+)\s*=\s*(\d+)", text, re.M)


def declared(parameters):
    return ", ".join(declaration for declaration, _ in parameters) or "void"


def entry(symbol, index, served):
    """One exported function."""
    target = symbol.per_thread or symbol.name
    head = f"CUresult entry_{index}"
    label = f' __asm__("{symbol.name}");'
    if target not in served or symbol.parameters is None:
        return (f"{head}(void){label}\n{head}(void)\n"
                f"{{\n    return driver_missing({index}, __builtin_return_address(0));\n}}\n")
    types, names = declared(symbol.parameters), ", ".join(name for _, name in symbol.parameters)
    flags = (1 if symbol.per_thread else 0) | (2 if QUEUES.match(symbol.base) else 0)
    flags |= 4 if BEFORE_INIT.match(symbol.base) else 0
    return (f"{head}({types}){label}\n{head}({types})\n{{\n"
            f"    CUresult result = driver_begin({index}, __builtin_return_address(0), {flags});\n"
            f"    return driver_end({index}, result != CUDA_SUCCESS ? result : do_{target}({names}));\n}}\n")


def followed(symbol, index):
    """The statements of the real call and of the same call in the simulation."""
    before, arguments, behind, needed = [], [], [], []
    for declaration, name in symbol.parameters:
        kind = " ".join(declaration.rsplit(name, 1)[0].split())
        made = name.replace("a", "b")
        if kind in HANDLES:
            arguments.append(f"({kind})record_handle((uint64_t){name}, {HANDLES[kind]})")
        elif kind.endswith(" *") and kind[:-2] in ADDRESSES:
            needed.append(name)
            before.append(f"{kind[:-2]} {made} = 0; record_adopt(*{name});")
            arguments.append(f"&{made}")
            behind.append("record_adopt(0);")
        elif kind.endswith(" *") and kind[:-2] in HANDLES:
            before.append(f"{kind[:-2]} {made} = 0;")
            arguments.append(f"{name} ? &{made} : NULL")
            behind.append(f"if ({name}) record_bind((uint64_t)*{name}, (uint64_t){made});")
        elif kind == "size_t *":
            before.append(f"size_t {made} = 0;")
            arguments.append(f"{name} ? &{made} : NULL")
        else:
            arguments.append(FUNCTIONS.get(kind, name))
    call = f"CUresult own = do_{symbol.per_thread or symbol.name}({', '.join(arguments)});"
    real = f"result = real({', '.join(name for _, name in symbol.parameters)});"
    check = f"if (result == CUDA_SUCCESS) driver_followed({index}, own);"
    if ENDS.match(symbol.base):
        return f"    {' '.join([*before, call, *behind])}\n    {real}\n    {check}"
    asked = "".join(f" && {name}" for name in needed)
    return (f"    {real}\n    if (result == CUDA_SUCCESS{asked}) {{\n"
            f"        {' '.join([*before, call, *behind])} driver_followed({index}, own);\n    }}")


def recorded_entry(symbol, index, served, by_hand):
    """One exported function of the recorder."""
    target = symbol.per_thread or symbol.name
    head, label = f"CUresult entry_{index}", f' __asm__("{symbol.name}");'
    if symbol.parameters is None:
        return (f"{head}(void){label}\n{head}(void)\n"
                f"{{\n    return driver_missing({index}, __builtin_return_address(0));\n}}\n")
    types, names = declared(symbol.parameters), ", ".join(name for _, name in symbol.parameters)
    flags = (1 if symbol.per_thread else 0) | (2 if QUEUES.match(symbol.base) else 0) | 4
    lines = [f"{head}({types}){label}", f"{head}({types})", "{",
             f"    CUresult (*const real)({types}) = (CUresult (*)({types}))driver_table[{index}].real;",
             "    CUresult result;",
             f"    if (!real) return driver_missing({index}, __builtin_return_address(0));",
             f"    driver_begin({index}, __builtin_return_address(0), {flags});", "    record_agree();"]
    kinds = [(" ".join(declaration.rsplit(name, 1)[0].split()), name) for declaration, name in symbol.parameters]
    if not ENDS.match(symbol.base):  # these are done here first
        lines += [f'    record_look("{LOOKED[kind]}", (uint64_t){name});' for kind, name in kinds if kind in LOOKED]
    if target in by_hand:
        lines.append(f"    result = record_{target}({index}, real{', ' * bool(names)}{names});")
    elif target in served and FOLLOWED.match(symbol.base):
        lines.append(followed(symbol, index))
    else:
        lines.append(f"    result = real({names});")
        lines += [f"    if (result == CUDA_SUCCESS && {name}) record_bind((uint64_t)*{name}, 0);"
                  for kind, name in kinds if kind[-2:] == " *" and kind[:-2] in LOOKED]
    return "\n".join([*lines, f"    return driver_end({index}, result);", "}", ""])


def implemented(sources, prefix):
    found = set()
    for source in sources:
        found.update(re.findall(rf"^CUresult {prefix}_(cu\w+)\(", pathlib.Path(source).read_text(), re.M))
    return found


def main():
    record = sys.argv[1] == "--record"
    folder, output, *sources = map(pathlib.Path, sys.argv[1 + record:])
    served, by_hand = implemented(sources, "do"), implemented(sources, "record")
    symbols = symbols_of(folder)
    unknown = served - {one.name for one in symbols}
    if unknown:
        sys.exit("make_tables.py: implemented, but not in the headers: " + " ".join(sorted(unknown)))
    lines = ["/* Made by make_tables.py. */", "#ifndef DRIVER_NAMES_H", "#define DRIVER_NAMES_H"]
    lines += [f"CUresult do_{one.name}({declared(one.parameters)});" for one in symbols
              if one.parameters is not None and not one.per_thread]
    for one in symbols:
        if one.name in by_hand:
            first = ["int row", f"CUresult (*real)({declared(one.parameters)})"]
            types = first + [declaration for declaration, _ in one.parameters]
            lines.append(f"CUresult record_{one.name}({', '.join(types)});")
    lines += ["#endif", ""]
    (output / "driver_names.h").write_text("\n".join(lines))
    lines = ["/* Made by make_tables.py. */", '#include "driver.h"', ""]
    lines += [recorded_entry(one, index, served, by_hand) if record else entry(one, index, served)
              for index, one in enumerate(symbols)]
    lines.append("driver_row driver_table[] = {")
    for index, one in enumerate(symbols):
        here = int((one.per_thread or one.name) in served and one.parameters is not None)
        if record and not MATTERS.match(one.base):
            here = 1
        function = "NULL" if record and one.parameters is None else f"(driver_pointer)entry_{index}"
        lines.append(f'    {{"{one.base}", "{one.name}", {one.version}, {int(bool(one.per_thread))}, {here}, 0, 0, 0, '
                     f"{function}, NULL}},")
    lines += ["};", "", "const driver_error driver_errors[] = {"]
    for name, number in errors_of(folder):
        words = name.replace("CUDA_ERROR_", "").replace("CUDA_SUCCESS", "NO_ERROR").replace("_", " ").lower()
        lines.append(f'    {{{number}, "{name}", "{words}"}},')
    lines += ["    {0, NULL, NULL}};", "", f"const int driver_rows = {len(symbols)};", ""]
    (output / "driver_entries.c").write_text("\n".join(lines))
    print(f"{len(symbols)} symbols, {len(served)} functions served")


if __name__ == "__main__":
    main()
