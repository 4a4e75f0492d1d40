#!/usr/bin/env python3
"""Unpacks from downloaded wheels only what a C++ program needs of LibTorch on the CPU.

Usage: unpack_libtorch.py WHEEL_FOLDER DESTINATION

The wheels hold 1.2 GB, of which 545 MB stay: the headers, five libraries and the licence texts. torch/ and nvidia/
stay beside one another, because the libraries find each other by paths relative to themselves (RPATH
$ORIGIN/../../nvidia/...). The last thing written is DESTINATION/.complete, one "size path" line per library; `./dev`
checks it before it trusts the folder. The digests of the wheels were checked by pip when it fetched them.
"""

import pathlib
import re
import sys
import zipfile

LIBRARIES = (
    "torch/lib/libc10.so",
    "torch/lib/libtorch_cpu.so",
    "torch/lib/libgomp.so.1",
    "nvidia/cu13/lib/libcudart.so.13",
    "nvidia/cu13/lib/libcupti.so.13",
)
HEADERS = "torch/include/"
LICENCE = re.compile(r"[^/]+\.dist-info/licenses/(LICENSE|NOTICE|License\.txt)$")


def wanted(name):
    return name in LIBRARIES or name.startswith(HEADERS) or LICENCE.match(name)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    wheels = sorted(pathlib.Path(sys.argv[1]).glob("*.whl"))
    destination = pathlib.Path(sys.argv[2])
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            members = [m for m in archive.infolist() if not m.is_dir() and wanted(m.filename)]
            archive.extractall(destination, members)
            print(f"    {wheel.name.split('-')[0]}: {len(members)} files", flush=True)

    missing = [name for name in LIBRARIES if not (destination / name).is_file()]
    if missing:
        sys.exit(f"the wheels in {sys.argv[1]} lack: {', '.join(missing)}")
    if not (destination / HEADERS / "torch/csrc/distributed/c10d/reducer.hpp").is_file():
        sys.exit(f"the wheels in {sys.argv[1]} lack the C++ headers of torch")
    sizes = [f"{(destination / name).stat().st_size} {name}\n" for name in LIBRARIES]
    (destination / ".complete").write_text("".join(sizes))


if __name__ == "__main__":
    main()
