#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the files of a release from a commit: archives, bundles, the wrap of Meson, a list of all files in SPDX
2.3 (the SBOM), and checksums.

    packaging/make_release.py [--commit COMMIT] FOLDER

The same commit gives the same bytes with the same zlib: names are sorted, times are that of the commit, and nobody owns
a file. `sha256sum -c SHA256SUMS` checks the files.
"""

import argparse
import gzip
import hashlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))
import make_bundles  # noqa: E402


def git(*arguments: str) -> bytes:
    command = ["git", "-c", "safe.directory=*", "-C", str(HERE.parent), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def tree_of(commit: str) -> dict[str, tuple[int, bytes]]:
    """Mode and bytes of each file of a commit, by name."""
    files = {}
    with tarfile.open(fileobj=io.BytesIO(git("archive", "--format=tar", commit))) as archive:
        for member in archive:
            if member.isfile():
                mode = 0o755 if member.mode & 0o100 else 0o644
                files[member.name] = (mode, archive.extractfile(member).read())
    return dict(sorted(files.items()))


def tar_gz(files: dict[str, tuple[int, bytes]], prefix: str, when: int) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, (mode, data) in files.items():
            member = tarfile.TarInfo(f"{prefix}/{name}")
            member.size, member.mode, member.mtime = len(data), mode, when
            archive.addfile(member, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), 9, mtime=0)


def zipped(files: dict[str, tuple[int, bytes]], prefix: str, when: int) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (mode, data) in files.items():
            member = zipfile.ZipInfo(f"{prefix}/{name}", time.gmtime(when)[:6])
            member.create_system, member.external_attr = 3, mode << 16  # as on Unix
            archive.writestr(member, data, zipfile.ZIP_DEFLATED, 9)
    return raw.getvalue()


def reference_of(files: dict[str, tuple[int, bytes]]) -> bytes:
    """docs/reference.md, which the repository does not have."""
    with tempfile.TemporaryDirectory() as name:
        for path in (*(one for one in files if one.endswith((".h", ".hpp"))), "tools/make_reference.py"):
            pathlib.Path(name, path).parent.mkdir(parents=True, exist_ok=True)
            pathlib.Path(name, path).write_bytes(files[path][1])
        page = pathlib.Path(name, "reference.md")
        subprocess.run([sys.executable, pathlib.Path(name, "tools/make_reference.py"), page], check=True)
        return page.read_bytes()


def bundles_of(files: dict[str, tuple[int, bytes]]) -> dict[str, tuple[int, bytes]]:
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name, "tree")
        for path in ("packaging/files.txt", *files["packaging/files.txt"][1].decode().split()):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(files[path][1])
        made = make_bundles.make(root, pathlib.Path(name, "bundles"))
        return {path.name: (0o644, path.read_bytes()) for path in sorted(made)}


def license_of(data: bytes) -> str:
    """What a line of the file says, else that of the project."""
    says = re.search(rb"^[^\w\n]{0,5}SPDX-License-Identifier: ([\w.-]+(?: WITH [\w.-]+)?)", data, re.MULTILINE)
    return says[1].decode() if says else "MIT"


def spdx_of(files: dict[str, tuple[int, bytes]], name: str, archive: bytes, when: int) -> bytes:
    """The files of the archive, as one package that depends on no other."""
    listed, sums, owners = [], [], "Copyright (c) 2026 the cai authors"
    for number, (path, (_, data)) in enumerate(files.items()):
        sums.append(hashlib.sha1(data).hexdigest())
        own = license_of(data)
        listed.append({
            "SPDXID": f"SPDXRef-File-{number}",
            "fileName": f"./{path}",
            "checksums": [{"algorithm": "SHA1", "checksumValue": sums[-1]},
                          {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}],
            "licenseConcluded": own,
            "licenseInfoInFiles": [own],
            "copyrightText": owners if own == "MIT" else "NOASSERTION",
        })  # fmt: skip
    used = sorted({each["licenseConcluded"] for each in listed})
    whole = hashlib.sha256(archive).hexdigest()
    package = {
        "SPDXID": "SPDXRef-Package",
        "name": "cai",
        "versionInfo": name.rpartition("-")[2],
        "packageFileName": f"{name}.tar.gz",
        "supplier": "NOASSERTION",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": True,
        "packageVerificationCode": {"packageVerificationCodeValue": hashlib.sha1("".join(sorted(sums)).encode()).hexdigest()},
        "checksums": [{"algorithm": "SHA256", "checksumValue": whole}],
        "licenseConcluded": " AND ".join(used),
        "licenseInfoFromFiles": used,
        "licenseDeclared": "MIT",
        "copyrightText": owners,
    }
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-Package")]
    relations += [("SPDXRef-Package", "CONTAINS", each["SPDXID"]) for each in listed]
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": name,
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{whole}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)), "creators": ["Tool: make_release.py"]},
        "packages": [package],
        "files": listed,
        "relationships": [{"spdxElementId": a, "relationshipType": what, "relatedSpdxElement": b} for a, what, b in relations],
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def release(commit: str) -> dict[str, bytes]:
    """The files of the release, by name."""
    files = tree_of(commit)
    files["docs/reference.md"] = (0o644, reference_of(files))
    files = dict(sorted(files.items()))
    when = int(git("log", "-1", "--format=%ct", commit))
    version = re.search(rb"v(\d+\.\d+\.\d+)", files["cai.h"][1])[1].decode()
    name = f"cai-{version}"
    archive = tar_gz(files, name, when)
    wrap = files["packaging/meson/cai.wrap"][1].decode()
    line = f"source_filename = {name}.tar.gz\n"
    hashed = wrap.replace(line, f"{line}source_hash = {hashlib.sha256(archive).hexdigest()}\n")
    return {
        f"{name}.tar.gz": archive,
        f"{name}.zip": zipped(files, name, when),
        f"{name}-bundles.zip": zipped(bundles_of(files), f"{name}-bundles", when),
        f"{name}.spdx.json": spdx_of(files, name, archive, when),
        "cai.wrap": hashed.encode(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    sums = ""
    for name, data in release(options.commit).items():
        (options.folder / name).write_bytes(data)
        sums += f"{hashlib.sha256(data).hexdigest()}  {name}\n"
        print(f"{name}: {len(data)} bytes")
    (options.folder / "SHA256SUMS").write_text(sums)


if __name__ == "__main__":
    main()
