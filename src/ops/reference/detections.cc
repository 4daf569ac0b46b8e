// SPDX-License-Identifier: Apache-2.0
// The last steps of TFLite's object detectors, which choose the boxes that are kept.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "ops/reference/elements.h"
#include "ops/reference/kernels.h"
#include "ops/tflite_detection_postprocess.h"

namespace hearth::ops::reference {
namespace {

float floatAt(const Tensor& tensor, int64_t place) {
  return static_cast<float>(realAt(tensor, place));
}

struct Rectangle {
  float top;
  float left;
  float bottom;
  float right;

  float area() const { return (right - left) * (bottom - top); }
};

// Intersection over union. In float32, because thresholds are compared with it.
float sharedPart(const Rectangle& a, const Rectangle& b) {
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  if (width < 0 || height < 0) return 0;
  const float both = width * height;
  const float all = a.area() + b.area() - both;
  return all > 0 ? both / all : 0;
}

// Indices of the numbers in descending order, NaN last; of equal numbers the first comes first.
std::vector<size_t> descending(const std::vector<float>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    if (std::isnan(values[a]) || std::isnan(values[b]))
      return std::isnan(values[b]) && !std::isnan(values[a]);
    return values[a] > values[b];
  });
  return order;
}

struct ScoredBox {
  Rectangle box;
  float score;
  size_t met = 0;  // kept boxes that it has been compared with
  bool isOut = false;
};

// The first box with the highest score among those that are left; null if none is left.
ScoredBox* highestOf(std::vector<ScoredBox>* boxes) {
  ScoredBox* highest = nullptr;
  for (ScoredBox& box : *boxes)
    if (!box.isOut && (highest == nullptr || box.score > highest->score)) highest = &box;
  return highest;
}

}  // namespace

// Keeps a box when it has the highest score of all and no kept box can lower it any more. A box is
// compared with the last kept box first, and in the end with itself.
Status suppressBoxes(const OperationContext& context) {
  const Tensor& corners = context.inputs[0];
  HEARTH_ASSIGN(const std::vector<int64_t> lengths, context.intVector(2));
  const float overlap = floatAt(context.inputs[3], 0);
  const float least = floatAt(context.inputs[4], 0);
  const float deviation = context.hasInput(5) ? floatAt(context.inputs[5], 0) : 0;
  if (deviation < 0 || std::isnan(deviation))
    return fail(ErrorCode::kBadData, "The deviation of {} is {}, it must not be negative.",
                context.describe(), deviation);
  std::vector<ScoredBox> boxes;
  for (int64_t i = 0; i < corners.dimensions[0]; ++i) {
    const auto corner = [&](int64_t number) {
      return floatAt(corners, 4 * i + number);
    };
    const Rectangle box = {std::min(corner(0), corner(2)), std::min(corner(1), corner(3)),
                           std::max(corner(0), corner(2)), std::max(corner(1), corner(3))};
    boxes.push_back({box, floatAt(context.inputs[1], i)});
    boxes.back().isOut = !(boxes.back().score > least);
  }
  const auto most =
      std::min<int64_t>(lengths[0], std::ranges::count(boxes, false, &ScoredBox::isOut));
  std::vector<ScoredBox> kept;
  std::vector<int64_t> indices;
  while (static_cast<int64_t>(kept.size()) < most) {
    ScoredBox* const next = highestOf(&boxes);
    if (next == nullptr) break;
    if (next->met == kept.size()) {
      kept.push_back(*next);
      indices.push_back(next - boxes.data());
      continue;
    }
    for (size_t i = kept.size(); i > next->met && !next->isOut; --i) {
      const float shared = sharedPart(next->box, kept[i - 1].box);
      if (deviation > 0 && shared > 0 && !(shared >= overlap))
        next->score *= std::exp(-0.5f / deviation * shared * shared);
      next->isOut = shared >= overlap || !(next->score > least);
    }
    next->met = kept.size();
  }
  for (int64_t i = 0; i < lengths[0]; ++i) {
    const bool isKept = i < static_cast<int64_t>(kept.size());
    const auto place = static_cast<size_t>(i);
    if (context.hasOutput(0)) putInteger(context.outputs[0], i, isKept ? indices[place] : 0);
    if (context.hasOutput(2)) putReal(context.outputs[2], i, isKept ? kept[place].score : 0);
  }
  if (context.hasOutput(1)) putInteger(context.outputs[1], 0, static_cast<int64_t>(kept.size()));
  return {};
}

namespace {

// Decodes a box from an anchor and its encoding, both (y, x, height, width) around the centre.
// Quantised numbers become float32 first, as in TFLite; the rest is computed in double.
Rectangle decoded(const OperationContext& context, const TfliteDetectionParameters& p,
                  int64_t anchor) {
  const auto encoding = [&](int64_t number) {
    return double{floatAt(context.inputs[0], anchor * p.encodingSize + number)};
  };
  const auto base = [&](int64_t number) {
    return double{floatAt(context.inputs[2], anchor * 4 + number)};
  };
  const auto y = static_cast<float>(encoding(0) / p.scaleY * base(2) + base(0));
  const auto x = static_cast<float>(encoding(1) / p.scaleX * base(3) + base(1));
  const auto height = static_cast<float>(0.5 * std::exp(encoding(2) / p.scaleHeight) * base(2));
  const auto width = static_cast<float>(0.5 * std::exp(encoding(3) / p.scaleWidth) * base(3));
  return {y - height, x - width, y + height, x + width};
}

// Goes from the highest score down to the threshold and keeps the boxes that no kept box overlaps
// too much.
std::vector<size_t> keepBoxes(const TfliteDetectionParameters& p,
                              const std::vector<Rectangle>& boxes, const std::vector<float>& scores,
                              size_t most) {
  std::vector<size_t> kept;
  for (const size_t next : descending(scores)) {
    if (kept.size() == most || !(scores[next] >= p.scoreThreshold)) break;
    bool isFree = true;
    for (const size_t other : kept)
      isFree = isFree && !(sharedPart(boxes[next], boxes[other]) > p.overlapThreshold);
    if (isFree) kept.push_back(next);
  }
  return kept;
}

struct Found {
  size_t slot;
  size_t anchor;
  size_t label;
  float score;
};

// The scores of one class for all anchors, or of one anchor for all classes.
std::vector<float> scoresOf(const OperationContext& context, const TfliteDetectionParameters& p,
                            bool isColumn, size_t number) {
  std::vector<float> scores(isColumn ? p.anchors : p.classes);
  for (size_t i = 0; i < scores.size(); ++i) {
    const size_t anchor = isColumn ? i : number;
    const size_t label = isColumn ? number : i;
    scores[i] =
        floatAt(context.inputs[1], static_cast<int64_t>(anchor * p.columns + p.firstClass + label));
  }
  return scores;
}

// Suppresses boxes within each class, then takes the best of all classes.
std::vector<Found> findByClass(const OperationContext& context, const TfliteDetectionParameters& p,
                               const std::vector<Rectangle>& boxes) {
  std::vector<Found> ofClasses;
  std::vector<float> scores;
  for (size_t label = 0; label < p.classes && !boxes.empty(); ++label) {
    const std::vector<float> column = scoresOf(context, p, true, label);
    for (const size_t anchor : keepBoxes(p, boxes, column, p.detectionsPerClass)) {
      ofClasses.push_back({0, anchor, label, column[anchor]});
      scores.push_back(column[anchor]);
    }
  }
  std::vector<Found> found;
  for (const size_t next : descending(scores)) {
    if (found.size() == p.maxDetections) break;
    found.push_back(ofClasses[next]);
    found.back().slot = found.size() - 1;
  }
  return found;
}

// Suppresses boxes by the scores of their best classes; `*count` is the number of boxes.
std::vector<Found> findByAnchor(const OperationContext& context, const TfliteDetectionParameters& p,
                                const std::vector<Rectangle>& boxes, size_t* count) {
  std::vector<float> scores;
  for (size_t anchor = 0; anchor < boxes.size(); ++anchor) {
    const std::vector<float> row = scoresOf(context, p, false, anchor);
    scores.push_back(row[descending(row)[0]]);
  }
  std::vector<Found> found;
  for (const size_t anchor : keepBoxes(p, boxes, scores, p.maxDetections)) {
    const std::vector<float> row = scoresOf(context, p, false, anchor);
    const std::vector<size_t> labels = descending(row);
    for (size_t i = 0; i < labels.size() && i < p.classesPerDetection; ++i)
      found.push_back({*count * p.classesPerDetection + i, anchor, labels[i], row[labels[i]]});
    ++*count;
  }
  return found;
}

}  // namespace

Status postprocessDetections(const OperationContext& context) {
  HEARTH_ASSIGN(const TfliteDetectionParameters p, parseTfliteDetection(context));
  std::vector<Rectangle> boxes;
  for (int64_t anchor = 0; anchor < p.anchors; ++anchor) {
    const Rectangle box = decoded(context, p, anchor);
    if (box.top > box.bottom || box.left > box.right)
      return fail(ErrorCode::kBadData, "Box {} of {} has its ends swapped.", anchor,
                  context.describe());
    boxes.push_back(box);
  }
  for (size_t output = 0; output < 3; ++output)
    if (context.hasOutput(output))
      std::memset(context.outputs[output].data, 0,
                  context.outputs[output].elementCount() * sizeof(float));
  size_t count = 0;
  std::vector<Found> found;
  if (p.usesRegular) {
    found = findByClass(context, p, boxes);
    count = found.size();
  } else {
    found = findByAnchor(context, p, boxes, &count);
  }
  for (const Found& one : found) {
    const Rectangle& box = boxes[one.anchor];
    const auto slot = static_cast<int64_t>(one.slot);
    const float corners[] = {box.top, box.left, box.bottom, box.right};
    for (int64_t i = 0; i < 4 && context.hasOutput(0); ++i)
      storeAs<float>(context.outputs[0], slot * 4 + i, corners[i]);
    if (context.hasOutput(1))
      storeAs<float>(context.outputs[1], slot, static_cast<float>(one.label));
    if (context.hasOutput(2)) storeAs<float>(context.outputs[2], slot, one.score);
  }
  if (context.hasOutput(3)) storeAs<float>(context.outputs[3], 0, static_cast<float>(count));
  return {};
}

}  // namespace hearth::ops::reference
