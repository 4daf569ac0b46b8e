// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/functions.h"

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/caught.h"
#include "frontends/delegate/delegate.h"
#include "runtime/device_manager.h"

namespace hearth::delegate {
namespace {

Result<std::unique_ptr<Delegate>> makeDelegate(const char* const* keys, const char* const* values,
                                               size_t count) {
  // Programs in Python pass an int, which leaves the upper half of the register open.
  const auto options = static_cast<uint32_t>(count);
  std::vector<std::pair<std::string_view, std::string_view>> texts;
  for (uint32_t i = 0; i < options; ++i) {
    if (keys == nullptr || values == nullptr || keys[i] == nullptr || values[i] == nullptr)
      return fail(ErrorCode::kUnexpectedNull, "Option {} of {} has no name or no value.", i,
                  options);
    texts.emplace_back(keys[i], values[i]);
  }
  HEARTH_ASSIGN(DelegateOptions parsed, DelegateOptions::parse(texts));
  runtime::DeviceManager::warmUp();
  return std::make_unique<Delegate>(std::move(parsed));
}

TfLiteDelegate* create(const char* const* keys, const char* const* values, size_t count,
                       void (*reportError)(const char*)) {
  auto made = base::caught([&] { return makeDelegate(keys, values, count); });
  if (made) return (*made).release()->handle();
  base::logged("reporting a failure", [&] {
    if (reportError != nullptr)
      reportError(made.error().toString().c_str());
    else
      base::logFailure("making the delegate", made.error());
  });
  return nullptr;
}

void destroy(TfLiteDelegate* delegate) {
  if (delegate != nullptr) delete Delegate::from(delegate);
}

}  // namespace
}  // namespace hearth::delegate

const hearth::delegate::Functions* hearth_delegate_functions() {
  static constexpr hearth::delegate::Functions functions = {hearth::delegate::create,
                                                            hearth::delegate::destroy};
  return &functions;
}
