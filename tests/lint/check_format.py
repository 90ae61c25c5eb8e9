#!/usr/bin/env python3
"""C and C++ sources are laid out by clang-format 14 (other versions lay out differently: skipped, exit 77).

usage: check_format.py <repository> <folders...>
"""
import pathlib
import re
import shutil
import subprocess
import sys


def find_tool():
    for name in ("clang-format-14", "clang-format"):
        tool = shutil.which(name)
        if tool:
            said = subprocess.run([tool, "--version"], check=True, text=True, stdout=subprocess.PIPE).stdout
            if re.search(r"version 14\.", said):
                return tool
    return None


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    tool = find_tool()
    if not tool:
        print("skipped: clang-format 14 is not installed")
        sys.exit(77)
    root = pathlib.Path(sys.argv[1])
    files = sorted(str(f) for folder in sys.argv[2:] for f in (root / folder).rglob("*")
                   if f.suffix in (".c", ".h", ".cpp", ".hpp"))
    result = subprocess.run([tool, "--dry-run", "-Werror", "--ferror-limit=1", "--style=file", *files], check=False)
    print(f"{len(files)} files; `{tool} -i FILE` lays a file out")
    sys.exit(1 if result.returncode or not files else 0)


if __name__ == "__main__":
    main()
