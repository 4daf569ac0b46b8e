// SPDX-License-Identifier: Apache-2.0
// The library against which linked_program.c is linked, in place of the original. No program runs
// with it.
#define STUB(name)   \
  void* name(void) { \
    return 0;        \
  }

STUB(TfLiteVersion)
STUB(TfLiteModelCreateFromFile)
STUB(TfLiteModelDelete)
STUB(TfLiteInterpreterCreate)
STUB(TfLiteInterpreterDelete)
STUB(TfLiteInterpreterAllocateTensors)
STUB(TfLiteInterpreterInvoke)
STUB(TfLiteInterpreterGetInputTensor)
STUB(TfLiteTensorData)
