#!/usr/bin/env bash
# Makes a wheel of programs that are built for the CPU and tools/python/hctr_model.py.
#   tools/package/build_wheel.sh BUILD_FOLDER OUT_FOLDER       (build/cpu dist)
# pip puts the programs and the plug-in for Parquet into the environment's bin. They need OpenBLAS, zstd and yaml-cpp of
# the system, MPI where the build found it (-DHCTR_MPI=OFF leaves it out), and the plug-in the Arrow of its build.
set -euo pipefail
if [ $# -ne 2 ]; then
  sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
source=$(cd "$(dirname "$0")/../.." && pwd)
bin=$(cd "$1/bin" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$bin/huge_ctr" --version | grep -q '^  CUDA: *none' || { echo "$1 is built with CUDA: a wheel holds programs for the CPU" >&2; exit 1; }
version=$("$bin/huge_ctr" --version | sed -n '1s/^huge_ctr //p')
scripts=$work/huge_ctr-$version.data/scripts info=$work/huge_ctr-$version.dist-info
mkdir -p "$scripts" "$info"
for program in huge_ctr criteo2hugectr data_generator data_inspect feature_spec preprocess table_inspect model_convert libhuge_ctr_parquet.so; do
  [ -e "$bin/$program" ] || { [ "$program" = libhuge_ctr_parquet.so ] && continue; echo "$bin/$program is not built" >&2; exit 1; }
  strip -o "$scripts/$program" "$bin/$program"
done
cp "$source/tools/python/hctr_model.py" "$work"
machine=$(uname -m)
cat >"$info/METADATA" <<END
Metadata-Version: 2.1
Name: huge_ctr
Version: $version
Summary: Trains click-through-rate models as a JSON file describes them
Requires-Python: >=3.8
Requires-Dist: numpy
END
cat >"$info/WHEEL" <<END
Wheel-Version: 1.0
Generator: huge_ctr
Root-Is-Purelib: false
Tag: py3-none-linux_$machine
END
python3 - "$work" "$out/huge_ctr-$version-py3-none-linux_$machine.whl" "huge_ctr-$version.dist-info/RECORD" <<'END'
import base64, hashlib, pathlib, sys, zipfile

folder, wheel, record = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
lines = []
with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name, data = path.relative_to(folder).as_posix(), path.read_bytes()
        entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))  # the same files give the same wheel
        entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}")
    archive.writestr(record, "\n".join(lines + [f"{record},,"]) + "\n")
print(wheel)
END
