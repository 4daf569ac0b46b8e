// SPDX-License-Identifier: Apache-2.0
#include "ops/padding.h"

#include <algorithm>
#include <limits>

namespace hearth::ops {
namespace {

constexpr int32_t kPaddingSame = 1;
constexpr int32_t kPaddingValid = 2;
constexpr int64_t kMaximumSize = std::numeric_limits<int32_t>::max();

struct Axis {
  const char* name;
  int64_t image;
  int64_t filter;
  int64_t stride;
  int64_t dilation;

  int64_t extent() const { return (filter - 1) * dilation + 1; }
};

// SAME gives ceil(image / stride) outputs; an odd element of padding goes to the end.
Status padSame(const OperationContext& context, const Axis& axis, int32_t* head, int32_t* tail) {
  const int64_t outputs = (axis.image + axis.stride - 1) / axis.stride;
  const int64_t total =
      std::max<int64_t>((outputs - 1) * axis.stride + axis.extent() - axis.image, 0);
  if (total > kMaximumSize)
    return fail(ErrorCode::kBadData,
                "The filter of {} spans {} elements of the {}, the limit is {}.",
                context.describe(), axis.extent(), axis.name, kMaximumSize);
  *head = static_cast<int32_t>(total / 2);
  *tail = static_cast<int32_t>(total - total / 2);
  return {};
}

Status checkAxis(const OperationContext& context, const Axis& axis, int64_t head, int64_t tail) {
  const int64_t padded = axis.image + head + tail;
  if (axis.extent() > padded)
    return fail(ErrorCode::kBadData,
                "The filter of {} spans {} elements, the padded {} of its image has {}.",
                context.describe(), axis.extent(), axis.name, padded);
  if (padded > kMaximumSize)
    return fail(ErrorCode::kBadData, "The padded {} of the image of {} is {}, the limit is {}.",
                axis.name, context.describe(), padded, kMaximumSize);
  return {};
}

uint32_t positions(int64_t image, int64_t head, int64_t tail, int64_t filter, int64_t dilation,
                   int64_t stride) {
  return static_cast<uint32_t>((image + head + tail - (filter - 1) * dilation - 1) / stride + 1);
}

Result<int32_t> positiveScalar(const OperationContext& context, size_t index, const char* what) {
  HEARTH_ASSIGN(const int32_t value, context.scalar<int32_t>(index));
  if (value <= 0)
    return fail(ErrorCode::kBadData, "The {} (input {}) of {} is {}, it must be positive.", what,
                index, context.describe(), value);
  return value;
}

}  // namespace

Status parsePadding(const OperationContext& context, size_t first, bool isImplicit,
                    const ImageShape& image, Window2d* window) {
  if (image.height == 0 || image.width == 0)
    return fail(ErrorCode::kBadData, "The image of {} has {} rows and {} columns.",
                context.describe(), image.height, image.width);
  const Axis vertical{"height", image.height, window->filterHeight, window->strideHeight,
                      window->dilationHeight};
  const Axis horizontal{"width", image.width, window->filterWidth, window->strideWidth,
                        window->dilationWidth};
  Padding2d& padding = window->padding;
  if (isImplicit) {
    HEARTH_ASSIGN(const int32_t code, context.scalar<int32_t>(first));
    if (code != kPaddingSame && code != kPaddingValid)
      return fail(ErrorCode::kBadData,
                  "The padding code (input {}) of {} is {}, it must be 1 or 2.", first,
                  context.describe(), code);
    window->isSamePadding = code == kPaddingSame;
    if (window->isSamePadding) {
      HEARTH_TRY(padSame(context, vertical, &padding.top, &padding.bottom));
      HEARTH_TRY(padSame(context, horizontal, &padding.left, &padding.right));
    }
  } else {
    int32_t* const sides[] = {&padding.left, &padding.right, &padding.top, &padding.bottom};
    for (size_t i = 0; i < 4; ++i) {
      HEARTH_ASSIGN(*sides[i], context.scalar<int32_t>(first + i));
      if (*sides[i] < 0)
        return fail(ErrorCode::kBadData,
                    "The padding (input {}) of {} is {}, it must not be negative.", first + i,
                    context.describe(), *sides[i]);
    }
  }
  HEARTH_TRY(checkAxis(context, vertical, padding.top, padding.bottom));
  return checkAxis(context, horizontal, padding.left, padding.right);
}

Status parseStrides(const OperationContext& context, size_t strides, size_t dilations,
                    Window2d* window) {
  HEARTH_ASSIGN(window->strideWidth, positiveScalar(context, strides, "stride"));
  HEARTH_ASSIGN(window->strideHeight, positiveScalar(context, strides + 1, "stride"));
  if (dilations == 0) return {};
  if (context.hasInput(dilations)) {
    HEARTH_ASSIGN(window->dilationWidth, positiveScalar(context, dilations, "dilation"));
  }
  if (context.hasInput(dilations + 1)) {
    HEARTH_ASSIGN(window->dilationHeight, positiveScalar(context, dilations + 1, "dilation"));
  }
  return {};
}

Status setFilterSize(const OperationContext& context, int64_t height, int64_t width,
                     Window2d* window) {
  if (height <= 0 || width <= 0 || height > kMaximumSize || width > kMaximumSize)
    return fail(ErrorCode::kBadData, "The filter of {} has {} rows and {} columns.",
                context.describe(), height, width);
  window->filterHeight = static_cast<int32_t>(height);
  window->filterWidth = static_cast<int32_t>(width);
  return {};
}

uint32_t outputHeight(const Window2d& window, uint32_t imageHeight) {
  return positions(imageHeight, window.padding.top, window.padding.bottom, window.filterHeight,
                   window.dilationHeight, window.strideHeight);
}

uint32_t outputWidth(const Window2d& window, uint32_t imageWidth) {
  return positions(imageWidth, window.padding.left, window.padding.right, window.filterWidth,
                   window.dilationWidth, window.strideWidth);
}

}  // namespace hearth::ops
