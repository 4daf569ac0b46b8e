// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tflite_abi/structures.h"

// An operator that a program defines. A registration in the form of a structure becomes one, since
// opaque contexts, nodes and tensors are the structures. Value type.
struct TfLiteOperator {
  int32_t builtinCode = 0;
  std::string customName;
  bool isCustom = false;
  const char* givenName = nullptr;  // by the program, which may compare the pointer; else null
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
  // For contexts, which show operators in this form, too.
  TfLiteRegistration structure{};

  bool hasInvoke() const { return invoke != nullptr || invokeWithData != nullptr; }

  void* callInit(TfLiteContext* context, const char* buffer, size_t length) const {
    if (initWithData != nullptr) return initWithData(user, context, buffer, length);
    return init == nullptr ? nullptr : init(context, buffer, length);
  }
  void callFree(TfLiteContext* context, void* state) const {
    if (releaseWithData != nullptr)
      releaseWithData(user, context, state);
    else if (release != nullptr)
      release(context, state);
  }
  TfLiteStatus callPrepare(TfLiteContext* context, TfLiteNode* node) const {
    if (prepareWithData != nullptr) return prepareWithData(user, context, node);
    return prepare == nullptr ? kTfLiteOk : prepare(context, node);
  }
  TfLiteStatus callInvoke(TfLiteContext* context, TfLiteNode* node) const {
    if (invokeWithData != nullptr) return invokeWithData(user, context, node);
    return invoke == nullptr ? kTfLiteError : invoke(context, node);
  }
};
