#!/usr/bin/env python3
"""The shared library exports exactly the functions of gemini.h; the version script names the same.

usage: check_symbols.py <nm> <libgemini.so> <gemini.h> <gemini.map>
"""
import pathlib
import re
import subprocess
import sys


def declared(header):
    text = re.sub(r"/\*.*?\*/", "", pathlib.Path(header).read_text(encoding="utf-8"), flags=re.S)
    return set(re.findall(r"GEMINI_API\s+[\w\s*]*?\b(gemini_\w+)\s*\(", text))


def mapped(version_script):
    lines = pathlib.Path(version_script).read_text(encoding="utf-8").splitlines()
    return {m.group(1) for m in (re.match(r"\s+(\w+);$", line) for line in lines) if m}


def exported(nm, library):
    out = subprocess.run([nm, "-D", "--defined-only", library], check=True, text=True, stdout=subprocess.PIPE)
    rows = [line.split() for line in out.stdout.splitlines()]
    return {row[-1].split("@")[0] for row in rows if row[-2] != "A"}  # A: the version node itself


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    nm, library, header, version_script = sys.argv[1:]
    functions = declared(header)
    findings = []
    for what, names in (("gemini.map", mapped(version_script)), (library, exported(nm, library))):
        findings += [f"{what} lacks {name}" for name in sorted(functions - names)]
        findings += [f"{what} has {name}, which gemini.h does not declare" for name in sorted(names - functions)]
    print("\n".join(findings))
    print(f"{len(functions)} functions in gemini.h, {len(findings)} findings")
    sys.exit(1 if findings or not functions else 0)


if __name__ == "__main__":
    main()
