#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# emulate.sh [--all-users] COMMAND...: becomes the command, which may be a program for ARM64 or start some: qemu-user
# runs them. QEMU_CPU names the processor ("qemu-aarch64 -cpu help" lists them). The kernel is told about
# qemu in namespaces of this command only; the command is root in them, and the user outside. With --all-users,
# which is root's, all users have their numbers there: packages can be installed in a folder.
set -eu
root=${HEARTH_CACHE_DIR:?is set by ./dev}/arm64
qemu=$root/tools/usr/bin/qemu-aarch64
mapping=(--map-root-user)
if [ "${1:-}" = --all-users ]; then
  mapping=(--map-users=all --map-groups=all)
  shift
fi

if [ "${HEARTH_EMULATE_STEP:-}" != inside ]; then
  if [ ! -x "$qemu" ]; then
    echo "emulate.sh: There is no $qemu; \"./dev build arm64\" fetches it." >&2
    exit 126
  fi
  if ! unshare --user "${mapping[@]}" --mount mount -t binfmt_misc none /proc/sys/fs/binfmt_misc \
    2>/dev/null; then
    echo "emulate.sh: This needs user namespaces with a binfmt_misc of their own, as Linux 6.7 and later" \
      "have it." >&2
    exit 126
  fi
  # Read by qemu in every process.
  export QEMU_LD_PREFIX=$root/sysroot
  HEARTH_EMULATE_STEP=inside exec unshare --user "${mapping[@]}" --mount "$0" "$@"
fi

unset HEARTH_EMULATE_STEP
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
# The header of an ELF file for this machine: 64 bits, little-endian, EM_AARCH64, a program or a library.
# F: the kernel opens qemu now, so that programs with another root find it.
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
printf '%s' ":arm64:M::$magic:$mask:$qemu:F" >/proc/sys/fs/binfmt_misc/register
exec "$@"
