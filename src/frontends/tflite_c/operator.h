// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "frontends/tflite_c/declarations.h"

// An operator that a program defines. A registration in the form of a structure becomes one, since
// opaque contexts, nodes and tensors are the structures. Value type.
struct TfLiteOperator {
  int32_t builtinCode = 0;
  std::string customName;
  bool isCustom = false;
  int version = 1;
  void* user = nullptr;
  TfLiteOperatorInit init = nullptr;
  TfLiteOperatorInitWithData initWithData = nullptr;
  TfLiteOperatorFree release = nullptr;
  TfLiteOperatorFreeWithData releaseWithData = nullptr;
  TfLiteOperatorStep prepare = nullptr;
  TfLiteOperatorStepWithData prepareWithData = nullptr;
  TfLiteOperatorStep invoke = nullptr;
  TfLiteOperatorStepWithData invokeWithData = nullptr;
};
