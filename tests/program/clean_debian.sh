#!/usr/bin/env bash
# The package on a Debian that has nothing else: clean_debian.sh BUILD [DIRECTORY]
#
# Makes a package of BUILD, installs it with apt in a fresh minimal Debian in DIRECTORY (made by debootstrap where it is not there;
# needs root, the package mirror of this machine, 700 MB and some minutes, so ctest does not run it), and there trains,
# goes on, evaluates, generates and plans, on one rank and on two. BUILD must be of the same release of Debian.
set -euo pipefail
[ $# -ge 1 ] && [ -f "$1/CPackConfig.cmake" ] || { echo "usage: clean_debian.sh BUILD [DIRECTORY]" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "clean_debian.sh: debootstrap and chroot need root" >&2; exit 2; }
build=$(cd "$1" && pwd)
own=$(mktemp -d)
root=${2:-$own/debian}
trap 'umount "$root/proc" "$root/sys" 2> /dev/null || true; rm -rf "$own"' EXIT

. /etc/os-release
if [ ! -d "$root" ]; then
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $VERSION_CODENAME" | head -n 1)
    debootstrap --variant=minbase "$VERSION_CODENAME" "$root" "$mirror" > "$own/debootstrap.log" || { tail "$own/debootstrap.log"; exit 1; }
fi
(cd "$own" && cpack --config "$build/CPackConfig.cmake" -B "$own/packages" > cpack.log) || { cat "$own/cpack.log"; exit 1; }
cp "$own"/packages/gdn_*.deb "$root/tmp/gdn.deb"
head -n 400 < <(yes 'The text that is trained on. It is of no account, but it repeats itself.') > "$root/tmp/text.txt"
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
mountpoint -q "$root/sys" || mount -t sysfs -o ro sysfs "$root/sys"

cat > "$root/tmp/use.sh" << 'END'
set -euo pipefail
cd /tmp
apt-get install -y -qq --no-install-recommends ./gdn.deb gnuplot-nox > apt.log 2>&1 || { tail apt.log; exit 1; }
ldd /usr/bin/gdn | grep 'not found' && exit 1
gdn --version | head -n 1
rm -rf runs
small=(--set model.hidden_size=32 --set model.intermediate_size=64 --set train.steps=20 --set train.eval_interval=10 --set data.train=text.txt)
gdn train /usr/share/gdn/configs/tiny.yaml "${small[@]}" --run-dir runs/a --set train.stop_at=10 && exit 1 || [ $? -eq 3 ]
mpirun -n 2 gdn train /usr/share/gdn/configs/tiny.yaml "${small[@]}" --run-dir runs/a
gdn eval runs/a
gdn generate runs/a --prompt "The text" --length 40
gdn checkpoint verify runs/a
gdn plan /usr/share/gdn/configs/tiny.yaml --ranks 4 > /dev/null
gdn report runs/a
END
chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    OMPI_MCA_rmaps_base_oversubscribe=1 DEBIAN_FRONTEND=noninteractive bash /tmp/use.sh < /dev/null
echo "clean_debian.sh: the package works on a Debian $VERSION_CODENAME that has nothing else"
