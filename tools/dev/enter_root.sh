# SPDX-License-Identifier: Apache-2.0
# enter_root.sh ROOT FOLDER REPO CACHE DATA COMMAND...: run in a mount namespace of its own; makes
# ROOT the root of the file system, with the host's folders at their own paths, goes to FOLDER and
# becomes COMMAND. There is no process in between that would have to pass signals on, and no chroot,
# in which the kernel refuses user namespaces.
set -eu
root=$1 folder=$2
shown=("$3" "$4" "$5")
shift 5

# Outside all that is bound below, so that the new root does not hold itself.
point=/run/hearth-root
mkdir -p "$point"
mount --bind "$root" "$point"

isSystem() {
  case $1 in
    /usr | /bin | /sbin | /lib* | /etc | /var | /run | /boot | /lost+found) return 0 ;;
  esac
  return 1
}

bind() {
  mkdir -p "$point$1"
  mount --rbind "$1" "$point$1"
}

for entry in /*; do
  if isSystem "$entry"; then
    :
  elif [ -L "$entry" ]; then
    [ -e "$point$entry" ] || [ -L "$point$entry" ] || cp --no-dereference "$entry" "$point$entry"
  elif [ -d "$entry" ]; then
    bind "$entry"
  fi
done
for entry in "${shown[@]}"; do
  top=${entry#/}
  if isSystem "/${top%%/*}" && [ -d "$entry" ]; then bind "$entry"; fi
done
for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
  if [ -f "$file" ] && [ -f "$point$file" ]; then mount --bind -o ro "$file" "$point$file"; fi
done

cd "$point"
export PATH=$HEARTH_DEV_PATH
unset HEARTH_DEV_PATH
if pivot_root . . 2>/dev/null; then
  # The old root now lies on top of the new one.
  umount --lazy .
  cd "$folder" 2>/dev/null || cd /
  exec "$@"
fi
# The first root file system of a machine cannot be pivoted away.
exec chroot . /bin/sh -c 'cd "$0" 2>/dev/null || cd /; exec "$@"' "$folder" "$@"
