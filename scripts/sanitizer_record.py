#!/usr/bin/env python3
"""Makes sanitizer.json of what sanitize_gpu.sh left: sanitizer_record.py WORK_DIR OUT_FILE.

WORK_DIR holds plain.json (the digests without a tool), TOOL.log of each tool and usage.txt
(cuobjdump --dump-resource-usage). Exit code 2 where a tool found an error, or did not come to its end.
"""
import json
import os
import re
import subprocess
import sys

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


def tool_result(tool, text, kernels, cases):
    """Errors that a tool's own summary counts; None where it gave no summary."""
    summaries = re.findall(r"ERROR SUMMARY: (\d+) error|SUMMARY: (\d+) hazards? displayed", text)
    compared = re.findall(r"(\d+) of (\d+) digests differ", text)
    errors = max(int(a or b) for a, b in summaries) if summaries else None
    if compared:  # a digest that a tool changes is an error, too
        errors = None if errors is None else errors + int(compared[-1][0])
        cases = int(compared[-1][1])
    else:  # the run under the tool did not come to its end
        errors, cases = None, 0
    found = [line.strip("= ") for line in text.splitlines()
             if re.search(r"========= (Invalid|Error|Race|Warning|Uninitialized|Barrier|Program hit)", line)]
    return {"tool": tool, "kernels": kernels, "cases": cases, "errors": errors, "first": found[:3]}


def resource_usage(text):
    """(name, registers, stack, local, shared) of every kernel, in cuobjdump's order."""
    rows = re.findall(r"Function ([^\s:]+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", text)
    names = [row[0] for row in rows]
    if names:
        names = subprocess.run(["c++filt"], input="\n".join(names), text=True, capture_output=True,
                               check=True).stdout.splitlines()
    return [{"kernel": name, "registers": int(r[1]), "stack": int(r[2]), "local": int(r[4]),
             "shared": int(r[3])} for name, r in zip(names, rows)]


def main(work, out):
    def read(name):
        with open(os.path.join(work, name), encoding="utf-8", errors="replace") as file:
            return file.read()

    plain = json.loads(read("plain.json"))
    usage = resource_usage(read("usage.txt"))
    record = {key: plain[key] for key in ("device", "driver", "toolkit", "commit")}
    record["command"] = "scripts/sanitize_gpu.sh"
    record["tools"] = [tool_result(tool, read(tool + ".log"), len(usage), len(plain["digests"]))
                       for tool in TOOLS]
    record["kernels"] = len(usage)
    record["most_registers"] = max((k["registers"] for k in usage), default=0)
    # A stack or local memory that a kernel of small arrays should not need: what did not fit.
    record["spills"] = [k for k in usage if k["stack"] or k["local"]]
    record["cases"] = sorted(plain["digests"])
    with open(out + ".part", "w", encoding="utf-8") as file:
        json.dump(record, file, indent=1)
        file.write("\n")
    os.replace(out + ".part", out)
    bad = [t["tool"] for t in record["tools"] if t["errors"] != 0]
    print(f"sanitize: {len(usage)} kernels, {len(record['spills'])} with a stack, "
          f"tools that are not clean: {', '.join(bad) or 'none'}")
    return 2 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
