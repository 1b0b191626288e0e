#!/usr/bin/env bash
# on_device.sh DEVICE SCRIPT [ARGUMENT …]: runs a script of this folder with all training and evaluation on the device,
# by putting a stand-in for gdn that adds --set device=… in $GDN's place. A device that is not there: a skipped test.
set -euo pipefail
device=$1 script=$2
shift 2
"$HAS_DEVICE" "$device" || exit
cat > gdn_on_device <<SH
#!/usr/bin/env bash
case \${1:-} in
    train | eval) exec "$GDN" "\$@" --set device=$device ;;
    *) exec "$GDN" "\$@" ;;
esac
SH
chmod +x gdn_on_device
GDN_BINARY=$GDN DEVICE=$device GDN=$PWD/gdn_on_device exec bash "$script" "$@"
