#!/usr/bin/env bash
# Installs what gdn needs on Debian and Ubuntu: setup.sh [--tests]. Never asks; does nothing where everything is there.
#   --tests   also Slurm and munge, which tests/slurm/ starts for itself; none of their services is configured or needed
set -euo pipefail

tests=
case "${1:-}" in
    '') ;;
    --tests) tests=1 ;;
    *) echo "usage: setup.sh [--tests]" >&2; exit 2 ;;
esac
[ $# -le 1 ] || { echo "usage: setup.sh [--tests]" >&2; exit 2; }

packages=(
    gcc g++ libc6-dev cmake ninja-build pkg-config      # build
    openmpi-bin libopenmpi-dev libhdf5-openmpi-dev  # ranks and checkpoints
    libopenblas-dev libdnnl-dev liblapacke-dev      # matrix products, factorisations
    libfyaml-dev libxxhash-dev libjansson-dev       # configuration, checksums, metrics
    libonig-dev libutf8proc-dev                     # tokenizers
    zlib1g-dev libzstd-dev                          # compressed documents
    gnuplot-nox                                     # plots
    libcmocka-dev hdf5-tools                        # tests
    bible-kjv bible-kjv-text                        # the text that train/corpus.sh prepares
)
[ -z "$tests" ] || packages+=(slurm-wlm slurm-client munge iproute2)

if ! command -v dpkg > /dev/null || ! command -v apt-get > /dev/null; then
    cat >&2 << 'END'
setup.sh installs packages on Debian and Ubuntu only. On this system, install by its own means:
  a C11 compiler with OpenMP, CMake 3.25 or newer, Ninja or make, pkg-config
  Open MPI (or another MPI 3.1), HDF5 1.10 or newer built with that MPI, h5dump and h5diff of HDF5's tools
  OpenBLAS and oneDNN (dnnl), LAPACK with its C interface LAPACKE, libfyaml, xxHash, Jansson, Oniguruma, utf8proc, zlib, zstd, gnuplot, cmocka
and put any English text as corpus/kjv/NAME.txt, which train/quickstart.sh then trains on.
For the tests that need it, where it is there: Slurm with its pmix plugin, and munge.
END
    exit 1
fi

missing=()
for package in "${packages[@]}"; do
    # "ii " or "hi ": wanted or held, and installed. A name that several architectures have prints one each.
    [[ $(dpkg-query -W -f '${db:Status-Abbrev}\n' "$package" 2> /dev/null) =~ (^|$'\n')[ih]i ]] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
    echo "setup.sh: all ${#packages[@]} packages are installed"
    exit 0
fi
if [[ " ${missing[*]} " == *" cmake "* ]]; then
    candidate=$(apt-cache policy cmake 2> /dev/null | sed -n 's/^ *Candidate: *\([0-9].*\)/\1/p') || candidate= # as where there are no lists yet
    if [ -n "$candidate" ] && dpkg --compare-versions "$candidate" lt 3.25; then
        echo "setup.sh: CMake 3.25 or newer is needed, and this system's packages have $candidate: Debian 12, Ubuntu 24.04 or newer is expected" >&2
        exit 1
    fi
fi
echo "setup.sh: installing ${missing[*]}"

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo > /dev/null; then
        echo "setup.sh: run it as root, or install sudo; missing: ${missing[*]}" >&2
        exit 1
    fi
    # -n: fail rather than wait for a password where nobody can type one.
    if [ -t 0 ]; then as_root=(sudo); else as_root=(sudo -n); fi
fi

apt() {
    # `env` because sudo drops the caller's variables. Waits for another apt instead of failing at once.
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a \
        apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@"
}
install() {
    apt install -y --no-install-recommends "${missing[@]}" < /dev/null
}

# The package lists of a fresh system are empty, and old ones name files that are gone: then fetch them and try again.
if ! apt-cache show "${missing[@]}" > /dev/null 2>&1 || ! install; then
    apt update < /dev/null
    install
fi
if [ -n "$tests" ]; then
    echo "setup.sh: the tests start munged, slurmctld and slurmd by themselves, privately; the system's services of these names are not configured"
    echo "setup.sh: and not needed: systemctl disable --now slurmctld slurmd munge"
fi
echo "setup.sh: done"
