#!/bin/sh
# Collects what `unmoor doctor` reads of a machine, so that `unmoor doctor --from-dump PATH` can judge it on another one.
#
#   sh collect.sh [FOLDER | FILE.tar.gz]        unmoor-machine.tar.gz, if none is named
#
# Needs a POSIX shell and the usual tools; Python only for what is said of Python. It reads versions, device nodes, libraries and
# the variables listed below, runs the vendors' own tools where they are, imports the engines, changes nothing and sends nothing.
# PYTHON names the interpreter that engines are in; PYTHON= leaves Python out. ENGINES=no does not import them.
set -u
LC_ALL=C
export LC_ALL
umask 077
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/opt/rocm/bin:/usr/local/neuware/bin:/usr/local/musa/bin:/opt/hyhal/bin
most=1048576 # Bytes of a file or of what a tool prints.
tab=$(printf '\t')

variables='LD_LIBRARY_PATH LD_PRELOAD CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES CUDA_HOME HIP_VISIBLE_DEVICES
  ROCR_VISIBLE_DEVICES HSA_OVERRIDE_GFX_VERSION ROCM_PATH ASCEND_RT_VISIBLE_DEVICES ASCEND_HOME_PATH ASCEND_TOOLKIT_HOME
  MLU_VISIBLE_DEVICES NEUWARE_HOME MUSA_VISIBLE_DEVICES MUSA_HOME ZE_AFFINITY_MASK ONEAPI_DEVICE_SELECTOR
  OCL_ICD_VENDORS OCL_ICD_FILENAMES PYTHONPATH'
files='/etc/os-release /proc/driver/nvidia/version /usr/local/cuda/version.json /opt/rocm/.info/version /opt/dtk/.info/version
  /sys/class/kfd/kfd/topology/nodes/*/properties /sys/module/hycu/version /sys/module/hydcu/version
  /usr/local/Ascend/driver/version.info /usr/local/Ascend/firmware/version.info
  /usr/local/Ascend/ascend-toolkit/latest/*-linux/ascend_toolkit_install.info'
nodes='/dev/nvidia* /dev/kfd /dev/mkfd /dev/dri/render* /dev/davinci* /dev/devmm_svm /dev/hisi_hdc /dev/cambricon* /dev/mtgpu* /dev/dxg'
# Names of vendors' libraries, and folders that hold them though the loader does not look there by itself.
libraries='libcuda libcudart libcudnn libcublas libcublasLt libnvrtc libnvinfer libnvidia-ml libOpenCL libamdhip64 libhsa-runtime64
  libMIOpen librocblas libhipblaslt libascendcl libascend_hal libhccl libcnrt libcndrv libcnnl libmusa libmusart libmudnn libmublas
  libze_loader libze_intel_gpu libsycl libstdc++'
homes='/usr/local/cuda/lib64 /opt/rocm/lib /opt/dtk/lib /opt/hyhal/lib /usr/local/Ascend/ascend-toolkit/latest/lib64
  /usr/local/Ascend/driver/lib64 /usr/local/Ascend/driver/lib64/common /usr/local/Ascend/driver/lib64/driver
  /usr/local/neuware/lib64 /usr/local/musa/lib'

say() { printf 'collect: %s\n' "$*" >&2; }

# limited SECONDS COMMAND…: ends it when the time is up.
limited() {
  if timeout 1 true 2>/dev/null; then
    timeout -k 2 "$@"
    return
  fi
  seconds=$1
  shift
  "$@" &
  child=$!
  (
    sleep "$seconds" &
    nap=$!
    trap 'kill "$nap"; exit' TERM
    wait "$nap"
    kill "$child"
  ) >/dev/null 2>&1 &
  watch=$!
  wait "$child"
  status=$?
  kill "$watch" 2>/dev/null
  return "$status"
}

# keep NAME SECONDS COMMAND…: what it prints becomes outputs/NAME; if it fails, outputs/NAME.failed with its status and last words.
keep() {
  name=$1 limit=$2
  shift 2
  command -v "$1" >/dev/null 2>&1 || return 0
  (
    ulimit -f 65536 2>/dev/null # Blocks of 512 bytes.
    limited "$limit" "$@"
  ) </dev/null >"$work/out" 2>"$work/err"
  status=$?
  if [ "$status" = 0 ]; then
    head -c "$most" "$work/out" >"$root/outputs/$name"
  else
    {
      if [ "$status" = 124 ]; then echo "no answer in $limit s"; else echo "exit status $status"; fi
      tail -c 4096 "$work/out"
      tail -c 4096 "$work/err"
    } >"$root/outputs/$name.failed"
  fi
}

copy_files() {
  for file in $files; do
    if [ -f "$file" ] && [ -r "$file" ]; then
      mkdir -p "$root${file%/*}"
      head -c "$most" "$file" >"$root$file"
    fi
  done 2>/dev/null
}

list_variables() {
  for name in $variables; do
    eval "given=\${$name+yes} value=\${$name-}"
    [ -z "$given" ] || printf '%s=%s\n' "$name" "$value"
  done
}

# ADDRESS VENDOR DEVICE CLASS DRIVER of what shows pictures or computes.
list_pci() {
  for device in /sys/bus/pci/devices/*; do
    [ -r "$device/class" ] || continue
    read -r class <"$device/class"
    case $class in 0x03* | 0x12* | 0x0b4*) ;; *) continue ;; esac
    read -r vendor <"$device/vendor"
    read -r chip <"$device/device"
    driver=$(readlink "$device/driver")
    echo "${device##*/} $vendor $chip $class ${driver##*/}"
  done
}

# NODE ACCESS MODE OWNER GROUP; the access is what this user has: r, w, rw or -.
list_nodes() {
  for node in $nodes; do
    [ -c "$node" ] || continue
    access=
    [ ! -r "$node" ] || access=r
    [ ! -w "$node" ] || access=${access}w
    ls -ld "$node" | {
      read -r mode _ owner group _
      echo "$node ${access:--} $mode $owner $group"
    }
  done
}

# list_folder ORIGIN FOLDER: ORIGIN, path and real path of each vendor's library in it.
list_folder() {
  for stem in $libraries; do
    for file in "$2/$stem".so*; do
      [ -f "$file" ] || continue
      printf '%s\t%s\t%s\n' "$1" "$file" "$(readlink -f "$file")"
    done
  done
}

# Those of this processor's kind that the loader's cache names.
list_cache() {
  case $(uname -m) in x86_64) kind=x86-64 ;; aarch64) kind=AArch64 ;; *) kind=libc6 ;; esac
  ldconfig -p | sed -n "s/^[[:space:]]*\(lib[^ ]*\) (\([^)]*$kind[^)]*\)) => \(.*\)\$/\1$tab\3/p" | while IFS=$tab read -r name file; do
    for stem in $libraries; do
      case $name in "$stem".so*) printf 'cache\t%s\t%s\n' "$file" "$(readlink -f "$file")" ;; esac
    done
  done
}

# In the order in which the loader looks.
list_libraries() {
  printf '%s\n' "${LD_LIBRARY_PATH-}" | tr ':;' '\n\n' | while read -r folder; do
    [ -z "$folder" ] || list_folder path "${folder%/}"
  done
  list_cache
  machine=$(uname -m)
  if [ -e /usr/lib64/libc.so.6 ]; then # /usr/lib is for 32 bits there.
    defaults='/lib64 /usr/lib64'
  else
    defaults="/lib/$machine-linux-gnu /usr/lib/$machine-linux-gnu /lib /usr/lib"
  fi
  for folder in $defaults; do list_folder default "$folder"; done
  for folder in $homes; do list_folder home "$folder"; done
}

# What the library that wins of each name lacks.
list_missing() {
  cut -f 1,2 "$root/outputs/libraries" | grep -v '^home' | cut -f 2 | awk -F / '!seen[$NF]++' | while read -r file; do
    real=$(readlink -f "$file")
    case $looked_at in *"$tab$real$tab"*) continue ;; esac
    looked_at="$looked_at$real$tab"
    limited 10 ldd -r "$file" 2>&1 | grep -E 'not found|undefined symbol' | head -n 20 | while read -r line; do printf '%s\t%s\n' "$file" "$line"; done
  done
}

list_firmware() { dmesg | grep -E 'Direct firmware load for|failed to load firmware' | tail -n 20; }

choose_python() {
  PYTHON=${UNMOOR_PYTHON-}
  for folder in "${VIRTUAL_ENV-}" "${CONDA_PREFIX-}"; do
    if [ -z "$PYTHON" ] && [ -n "$folder" ] && [ -x "$folder/bin/python3" ]; then PYTHON=$folder/bin/python3; fi
  done
  PYTHON=${PYTHON:-python3}
}

write_python() {
  cat >"$work/facts.py" <<'UNMOOR_PYTHON_FACTS'
@FACTS@
UNMOOR_PYTHON_FACTS
  cat >"$work/probe.py" <<'UNMOOR_ENGINE_PROBE'
@PROBE@
UNMOOR_ENGINE_PROBE
}

ask_python() {
  printf '%s\n' "$PYTHON" >"$root/outputs/interpreter"
  write_python
  keep python 120 "$PYTHON" -c "$(cat "$work/facts.py")"
  [ -f "$root/outputs/python" ] || return 0
  if [ "${ENGINES-yes}" != no ]; then
    for engine in ort torch; do keep "engine-$engine" 300 "$PYTHON" -c "$(cat "$work/probe.py")" "$engine"; done
  fi
  for module in torch_npu torch_mlu torch_musa intel_extension_for_pytorch; do
    package=$(echo "$module" | tr _ -)
    if grep -q "\"$package\"" "$root/outputs/python"; then keep "import-$package" 300 "$PYTHON" -c "import $module"; fi
  done
}

ask_tools() {
  keep nvidia-smi 20 nvidia-smi --query-gpu=compute_cap --format=csv,noheader
  keep npu-smi 20 npu-smi info
  keep rocm-smi 20 rocm-smi
  keep hy-smi 20 hy-smi
  keep cnmon 20 cnmon info
  keep mthreads-gmi 20 mthreads-gmi
  keep xpu-smi 20 xpu-smi discovery
}

collect() {
  mkdir -p "$root/outputs"
  uname -srm >"$root/outputs/uname"
  list_variables >"$root/outputs/variables"
  copy_files
  ask_tools # Before nodes are listed: NVIDIA's makes them.
  list_pci >"$root/outputs/pci"
  list_nodes >"$root/outputs/nodes"
  if [ -r /proc/modules ]; then cut -d ' ' -f 1 /proc/modules >"$root/outputs/modules"; fi
  list_libraries >"$root/outputs/libraries"
  looked_at=$tab
  list_missing >"$root/outputs/missing"
  list_firmware >"$root/outputs/firmware"
  if [ -n "$PYTHON" ]; then ask_python; fi
  echo "unmoor-machine 1 $(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$root/outputs/collected"
}

target=${1:-unmoor-machine.tar.gz}
[ -n "${PYTHON+given}" ] || choose_python
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
case $target in
  *.tar.gz | *.tgz) root=$work/machine ;;
  *)
    root=$target
    if [ -d "$root" ] && [ -n "$(ls -A "$root")" ]; then
      say "'$root' is there and not empty; name another folder"
      exit 1
    fi
    ;;
esac
collect 2>/dev/null
if [ ! -f "$root/outputs/collected" ]; then
  say "'$root' could not be written"
  exit 1
fi
if [ "$root" != "$target" ] && ! (cd "$root" && tar -cf - .) | gzip -c >"$target"; then
  say "'$target' could not be written; is tar or gzip missing? Name a folder instead of an archive"
  exit 1
fi
[ "${QUIET-}" = yes ] || say "wrote $target; judge it with: unmoor doctor --from-dump $target"
