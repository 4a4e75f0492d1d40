#!/usr/bin/env python3
"""Makes the two IDX files beside this script from scikit-learn's copy of the UCI digits.

Usage: convert.py digits.csv.gz
       convert.py scikit_learn-1.5.2-...whl

The source has one line an image: 64 pixels of 0 to 16 in reading order, then the label. The IDX files are laid out as
those of MNIST: big-endian 32-bit magic and sizes, then one unsigned byte a pixel or label. Values are copied as they
are. The output is the same byte for byte on every machine.
"""

import collections
import gzip
import hashlib
import pathlib
import struct
import sys
import zipfile

MEMBER = "sklearn/datasets/data/digits.csv.gz"


def read_source(path):
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return gzip.decompress(wheel.read(MEMBER)).decode("ascii")
    return gzip.decompress(path.read_bytes()).decode("ascii")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    lines = read_source(pathlib.Path(sys.argv[1])).splitlines()
    rows = [[int(field) for field in line.split(",")] for line in lines]
    for number, row in enumerate(rows, start=1):
        if len(row) != 65:
            sys.exit(f"line {number}: not 64 pixels and a label")
        if not all(0 <= pixel <= 16 for pixel in row[:64]) or not 0 <= row[64] <= 9:
            sys.exit(f"line {number}: a value is out of range")
    pixels = bytes(pixel for row in rows for pixel in row[:64])
    labels = bytes(row[64] for row in rows)

    folder = pathlib.Path(__file__).resolve().parent
    files = {
        "images-idx3-ubyte": struct.pack(">IIII", 0x00000803, len(rows), 8, 8) + pixels,
        "labels-idx1-ubyte": struct.pack(">II", 0x00000801, len(rows)) + labels,
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
        print(f"{hashlib.sha256(content).hexdigest()}  {name} ({len(content)} bytes)")
    print("images per label:", dict(sorted(collections.Counter(labels).items())))


if __name__ == "__main__":
    main()
