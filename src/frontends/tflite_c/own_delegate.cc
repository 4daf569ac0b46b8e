// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/own_delegate.h"

namespace hearth::tflite_c {
namespace {

// For another runtime: the delegate takes none of its nodes.
TfLiteStatus takeNothing(TfLiteContext* /*context*/, TfLiteDelegate* /*delegate*/) {
  return kTfLiteOk;
}

}  // namespace

OwnDelegate::OwnDelegate(int64_t flags) {
  handle_.data_ = this;
  handle_.Prepare = takeNothing;
  handle_.flags = flags;
}

const OwnDelegate* OwnDelegate::from(const TfLiteDelegate* delegate) {
  if (delegate == nullptr || delegate->Prepare != takeNothing) return nullptr;
  return static_cast<const OwnDelegate*>(delegate->data_);
}

}  // namespace hearth::tflite_c
