#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compile.sh COMPILER ARGUMENT...: runs a compiler; the prefix command of ccache. GCC collects garbage
# whenever its heap has grown from 128 MiB on, for a tenth of its time; half a GiB is more than our
# sources need. Object files are the same either way, so this is no option of the build: the compiler
# cache would not know them again.
case ${1##*/} in
  *clang*) exec "$@" ;;
esac
exec "$@" --param=ggc-min-heapsize=524288
