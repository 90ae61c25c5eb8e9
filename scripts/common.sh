# shellcheck shell=bash disable=SC2154
# What quickstart and test share. Sourced; `repo` is the root of the repository, `stages` the number of stages.

stage_number=0
started=$SECONDS

# stage WORDS: one line that says what happens now
stage() {
  stage_number=$((stage_number + 1))
  printf '==> [%d/%d, %ds] %s\n' "$stage_number" "$stages" "$((SECONDS - started))" "$*"
}

# install_packages PACKAGE...: installs what is missing from Debian's packages
install_packages() {
  local missing=() package
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "    This is no Debian. Needed, under the names your system gives them (on clusters: modules):"
    echo "    $*"
    echo "    Going on with what is there."
    return
  fi
  for package in "$@"; do
    if [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
      missing+=("$package")
    fi
  done
  if [ ${#missing[@]} -eq 0 ]; then
    echo "    Everything is there, nothing to install."
    return
  fi
  local as_root=(env DEBIAN_FRONTEND=noninteractive)
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "    Missing, and neither root nor sudo is here to install it: ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo "${as_root[@]}")
  fi
  echo "    Installing with apt-get: ${missing[*]}"
  logged "$logs/apt.log" "${as_root[@]}" apt-get update
  logged "$logs/apt.log" "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}"
}

# logged FILE COMMAND...: runs quietly; if it fails, shows the end of what it said and stops
logged() {
  local log=$1
  shift
  if ! "$@" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "Failed: $* (all of it is in $log)" >&2
    exit 1
  fi
}

# configure NAME BUILD CMAKE_OPTION...: with Ninja where it is; a build folder keeps the generator it has
configure() {
  local name=$1 build=$2 generator=()
  shift 2
  if command -v ninja >/dev/null && [ ! -e "$build/CMakeCache.txt" ]; then generator=(-G Ninja); fi
  logged "$logs/configure-$name.log" cmake -S "$repo" -B "$build" "${generator[@]}" "$@"
}

# from_cache BUILD NAME: a value out of CMake's cache
from_cache() {
  sed -n "s/^$2:[A-Z]*=//p" "$1/CMakeCache.txt"
}

cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)  # nproc would say those

# Open MPI: allowed as root (containers), on fewer cores than ranks, threads not bound to one core. Others
# do not look at these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
