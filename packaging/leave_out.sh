#!/usr/bin/env bash
# leave_out.sh LIB: takes out of what is laid out for the package what nothing on a node uses: what is for builds, tests and
# examples, and jokes of the standard library. Called by build.sh, before the modules are compiled.
set -euo pipefail
cd "$1/python"
rm -rf include
find . \( -name '*.a' -o -name direct_url.json \) -delete
cd lib/python3.*/
rm -rf __phello__ __hello__.py antigravity.py this.py ctypes/macholib email/architecture.rst {tomllib,_pyrepl}/mypy.ini
# An administrator's env would start them with the system's Python. The line stays, and with it the numbers in tracebacks.
find . -name site-packages -prune -o -name '*.py' -exec sed --in-place '1s/^#!.*//' {} +
cd site-packages
rm -rf README.txt bin include share example.py systemd/test pyroute2/{fixtures,config/test_platform.py}
rm -rf google/protobuf/{testdata,benchmarks,internal/{testing_refleaks,message_benchmark,json_format_benchmark}.py}
# What distributions are compiled from.
find . \( -name '*.c' -o -name '*.cc' -o -name '*.h' -o -name '*.pyx' \) -delete
find . -type d -empty -delete
# None of them is a program, and some wheels say of all their files that they are.
find "$1/python/lib" -type f -exec chmod 644 {} +
