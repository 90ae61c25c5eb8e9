#!/usr/bin/env python3
"""Files stay short enough to be read: a warning from 200 lines on, a failure from 400 (gemini.h: 500).

usage: check_length.py <repository> <folders...>
"""
import pathlib
import sys

AIM, LIMIT, LIMIT_OF = 200, 400, {"gemini.h": 500}
SUFFIXES = {".c", ".h", ".cpp", ".hpp", ".py", ".cmake"}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    failed = checked = 0
    for file in sorted(f for folder in sys.argv[2:] for f in (root / folder).rglob("*") if f.suffix in SUFFIXES):
        lines = len(file.read_text(encoding="utf-8").splitlines())
        limit = LIMIT_OF.get(file.name, LIMIT)
        checked += 1
        failed += lines > limit
        if lines > AIM:
            word = f"FAILED, the limit is {limit}" if lines > limit else "warning, the aim is {}".format(AIM)
            print(f"{file.relative_to(root)}: {lines} lines: {word}")
    print(f"{checked} files, {failed} too long")
    sys.exit(1 if failed or not checked else 0)


if __name__ == "__main__":
    main()
