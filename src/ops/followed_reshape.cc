// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "ops/following.h"

namespace hearth::ops {
namespace {

// The products of all dimensions before each one, and of all of them. Nothing if that overflows.
std::optional<std::vector<uint64_t>> productsBefore(const Dimensions& dimensions) {
  std::vector<uint64_t> products = {1};
  for (const uint32_t size : dimensions) {
    uint64_t product = 0;
    if (size == 0 || __builtin_mul_overflow(products.back(), uint64_t{size}, &product))
      return std::nullopt;
    products.push_back(product);
  }
  return products;
}

bool scale(uint32_t* size, uint32_t before, uint32_t now) {
  uint64_t scaled = 0;
  if (*size % before != 0 ||
      __builtin_mul_overflow(uint64_t{*size / before}, uint64_t{now}, &scaled) ||
      scaled > UINT32_MAX)
    return false;
  *size = static_cast<uint32_t>(scaled);
  return true;
}

// Finds the place of each changed dimension of the input in the output's declared shape.
class Reshaping {
 public:
  Reshaping(const FollowedTensor& input, const Dimensions& output)
      : input_(input), output_{output, output, true} {}

  // The output's present shape, if there is but one reading.
  std::optional<FollowedTensor> run() {
    const auto from = productsBefore(input_.before);
    const auto to = productsBefore(output_.before);
    if (!from || !to || from->back() != to->back()) return std::nullopt;
    from_ = *from;
    to_ = *to;
    for (size_t i = 0; i < input_.before.size(); ++i)
      if (input_.before[i] != input_.now[i] && !place(i)) return std::nullopt;
    const auto now = productsBefore(input_.now);
    const auto made = productsBefore(output_.now);
    if (!now || !made || now->back() != made->back()) return std::nullopt;
    return std::move(output_);
  }

 private:
  bool place(size_t i) {
    if (i == 0 && input_.isJoined) return placeJoined();
    return input_.before[i] == 1 ? placeGrown(i) : placeLarge(i);
  }

  // A dimension that holds parts and others.
  bool placeJoined() {
    const uint32_t size = input_.before[0];
    if (output_.before.empty()) return false;
    const bool isOwn = output_.before[0] == input_.partsBefore;
    if (isOwn && output_.before[0] != size && std::ranges::contains(to_, uint64_t{size})) {
      output_.now[0] = input_.partsNow;
      output_.parts |= partsBit(0);
      return true;
    }
    if (!scale(&output_.now[0], size, input_.now[0])) return false;
    join(input_.partsBefore, input_.partsNow);
    return true;
  }

  // A dimension that was 1. Several of them in a row keep their order.
  bool placeGrown(size_t i) {
    const std::vector<size_t> ones = onesAt(input_.before, from_, from_[i]);
    const std::vector<size_t> places = onesAt(output_.before, to_, from_[i]);
    const auto order = static_cast<size_t>(std::ranges::find(ones, i) - ones.begin());
    std::optional<size_t> found;
    if (ones.size() == places.size()) found = places[order];
    // A batch comes first.
    if (!found && i == 0 && !places.empty()) found = places[0];
    if (found) {
      output_.now[*found] = input_.now[i];
      if (holdsParts(input_, i)) output_.parts |= partsBit(*found);
      return true;
    }
    if (i != 0 || !holdsParts(input_, 0) || output_.before.empty() ||
        !scale(&output_.now[0], 1, input_.now[0]))
      return false;
    join(1, input_.now[0]);
    return true;
  }

  // A larger dimension is one of the output's, or a factor of one.
  bool placeLarge(size_t i) {
    const uint32_t size = input_.before[i];
    const uint64_t end = from_[i + 1];
    for (size_t k = 0; k < output_.before.size(); ++k) {
      if (to_[k] > from_[i] || to_[k + 1] < end || from_[i] % to_[k] != 0 || to_[k + 1] % end != 0)
        continue;
      if (output_.before[k] == 1 || !scale(&output_.now[k], size, input_.now[i])) return false;
      if (!holdsParts(input_, i)) return true;
      if (output_.before[k] == size) {
        output_.parts |= partsBit(k);
        return true;
      }
      return false;
    }
    return placeFactor(i);
  }

  // A dimension that holds a factor which changes beside others, and that the output has divided,
  // like 3 queries of 128 tokens each: [3,384] becomes [9,128]. There is one reading where only one
  // of the output's dimensions shares a factor with it that can change in this proportion.
  bool placeFactor(size_t i) {
    if (holdsParts(input_, i)) return false;
    const uint32_t common = std::gcd(input_.before[i], input_.now[i]);
    const uint32_t before = input_.before[i] / common;
    std::optional<size_t> found;
    for (size_t k = 0; k < output_.before.size(); ++k) {
      const uint64_t begin = std::max(from_[i], to_[k]);
      const uint64_t end = std::min(from_[i + 1], to_[k + 1]);
      const bool isShared = begin < end && end % begin == 0;
      if (!isShared || end / begin % before != 0) continue;
      if (found) return false;
      found = k;
    }
    return found && scale(&output_.now[*found], before, input_.now[i] / common);
  }

  void join(uint32_t before, uint32_t now) {
    output_.parts |= partsBit(0);
    output_.isJoined = true;
    output_.partsBefore = before;
    output_.partsNow = now;
  }

  static std::vector<size_t> onesAt(const Dimensions& dimensions,
                                    const std::vector<uint64_t>& products, uint64_t product) {
    std::vector<size_t> places;
    for (size_t i = 0; i < dimensions.size(); ++i)
      if (dimensions[i] == 1 && products[i] == product) places.push_back(i);
    return places;
  }

  const FollowedTensor& input_;
  FollowedTensor output_;
  std::vector<uint64_t> from_;
  std::vector<uint64_t> to_;
};

}  // namespace

std::optional<FollowedTensor> followReshape(const FollowedTensor& input, const Dimensions& output) {
  return Reshaping(input, output).run();
}

}  // namespace hearth::ops
