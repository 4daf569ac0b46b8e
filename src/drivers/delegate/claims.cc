// SPDX-License-Identifier: Apache-2.0
#include "drivers/delegate/claims.h"

#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"

namespace hearth::drivers::delegate {
namespace {

// Of models, in memory.
constexpr size_t kMostKnown = 256;

}  // namespace

std::string encodeClaims(const Claims::Supports& supports) {
  auto reasons = nlohmann::json::array();
  for (const hal::OperationSupport& support : supports) reasons.push_back(support.reason);
  // Names of the model's tensors may be in reasons, in any encoding.
  return reasons.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Claims::Supports> decodeClaims(std::string_view bytes) {
  const auto reasons = nlohmann::json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (!reasons.is_array()) return fail(ErrorCode::kBadData, "The claims are no JSON list.");
  Claims::Supports supports;
  for (const auto& reason : reasons) {
    if (!reason.is_string())
      return fail(ErrorCode::kBadData, "Claim {} is no text.", supports.size());
    const auto& text = reason.get_ref<const std::string&>();
    supports.push_back({text.empty(), text.empty() ? "own" : "", text});
  }
  return supports;
}

std::optional<Claims::Supports> Claims::find(const base::Sha256Digest& key, size_t operations) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
  }
  if (store_ == nullptr) return std::nullopt;
  const auto table = store_->read({key});
  if (!table) return std::nullopt;
  auto supports = decodeClaims({reinterpret_cast<const char*>(table->data()), table->size()});
  if (!supports || supports->size() != operations) return std::nullopt;
  keep(key, *supports);
  return *std::move(supports);
}

void Claims::remember(const base::Sha256Digest& key, const Supports& supports) {
  keep(key, supports);
  if (store_ == nullptr) return;
  const std::string bytes = encodeClaims(supports);
  if (const auto written =
          store_->write({key}, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
      !written)
    base::logInfo("What the delegate takes is not kept. {}", written.error().message);
}

void Claims::keep(const base::Sha256Digest& key, const Supports& supports) {
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMostKnown) known_.clear();
  known_.insert_or_assign(key, supports);
}

}  // namespace hearth::drivers::delegate
