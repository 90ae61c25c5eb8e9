#!/usr/bin/env python3
"""AVX instructions stand only in functions of a level's own namespace (src/kernels/dispatch.hpp), so that the
linker cannot choose them for code that every processor runs. Objects that are built for AVX throughout would
fail: the caller leaves this out then.

usage: check_levels.py <objdump> <folder in the objects' paths> <objects...> | --self-test
"""
import re
import subprocess
import sys

FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
AVX = re.compile(r"^\s*[0-9a-f]+:\s+v(?!er[rw]\b|m(call|launch|resume|xoff|read|write))[a-z0-9]+\s")
LEVEL = re.compile(r"\bN_AVX\w*::")


def check(lines):
    """Names of functions that have AVX instructions: those that may, those that may not."""
    allowed, findings, name = set(), set(), ""
    for line in lines:
        match = FUNCTION.match(line)
        if match:
            name = match.group(1)
        elif AVX.match(line):
            (allowed if LEVEL.search(name) else findings).add(name)
    return allowed, findings


def self_test():
    text = """0000 <void gemini::kernels::N_AVX2::run_block<Add<float> >(long)>:
       4:\tvaddps %ymm1,%ymm0,%ymm0
0010 <gemini::kernels::N_SCALAR::run_block(long)>:
      14:\taddps  %xmm1,%xmm0
      18:\tverr   %ax
0020 <std::max(float, float)>:
      24:\tvmaxss %xmm1,%xmm0,%xmm0
""".splitlines()
    sys.exit(check(text) != ({"void gemini::kernels::N_AVX2::run_block<Add<float> >(long)"},
                             {"std::max(float, float)"}))


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    objects = [path for path in sys.argv[3:] if sys.argv[2] in path]
    out = subprocess.run([sys.argv[1], "-dC", "--no-show-raw-insn", *objects], check=True, text=True,
                         stdout=subprocess.PIPE)
    allowed, findings = check(out.stdout.splitlines())
    for name in sorted(findings):
        print(f"AVX outside of a level's namespace: {name}")
    print(f"{len(objects)} objects, {len(allowed)} functions with AVX where it belongs, {len(findings)} elsewhere")
    sys.exit(1 if findings or not allowed else 0)


if __name__ == "__main__":
    main()
