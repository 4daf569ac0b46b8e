// SPDX-License-Identifier: Apache-2.0
// The reference kernels: each operation as its documentation defines it, one element at a time, in
// double or, where the definition is in integers, in integers. They share no loop with the kernels
// of src/ops, which they judge, but only the reading of arguments and the rounding that is part of
// a definition. No vectors, no threads, no short cuts.
#pragma once

#include <span>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops::reference {

// Computes the outputs of an operation that has passed validate() and prepare() and whose arguments
// have data. Errors as those of OperationDefinition::execute. Thread-safe.
using Kernel = Status (*)(const OperationContext& context);

// Null for an operation without a reference kernel: sharedOperations(), IF and WHILE.
Kernel findKernel(OperationType type);

// The operations whose only kernel is OperationDefinition::execute.
std::span<const OperationType> sharedOperations();

// The kernels, by file. cast.cc
Status cast(const OperationContext& context);

// complex.cc
Status takeComplexPart(const OperationContext& context);
Status transformFourier(const OperationContext& context);

// convolution.cc
Status convolve(const OperationContext& context);
Status convolve3d(const OperationContext& context);
Status convolve3dTransposed(const OperationContext& context);
Status convolveDepthwise(const OperationContext& context);
Status convolveTransposed(const OperationContext& context);

// detections.cc
Status postprocessDetections(const OperationContext& context);
Status suppressBoxes(const OperationContext& context);

// elementwise.cc
Status combineBits(const OperationContext& context);
Status combineLogically(const OperationContext& context);
Status compare(const OperationContext& context);
Status computeBinary(const OperationContext& context);
Status computeUnary(const OperationContext& context);
Status negateLogically(const OperationContext& context);
Status rectifyParametrically(const OperationContext& context);
Status select(const OperationContext& context);

// images.cc
Status alignRegions(const OperationContext& context);
Status pool(const OperationContext& context);
Status poolRegions(const OperationContext& context);
Status resizeBilinear(const OperationContext& context);

// lookups.cc
Status broadcastArguments(const OperationContext& context);
Status combineSegments(const OperationContext& context);
Status encodeOneHot(const OperationContext& context);
Status fill(const OperationContext& context);
Status fillWithZeros(const OperationContext& context);
Status findBuckets(const OperationContext& context);
Status findNonZeros(const OperationContext& context);
Status findRank(const OperationContext& context);
Status findShape(const OperationContext& context);
Status findUnique(const OperationContext& context);
Status setPlaces(const OperationContext& context);
Status gather(const OperationContext& context);
Status gatherNd(const OperationContext& context);
Status lookUpEmbeddings(const OperationContext& context);
Status lookUpHashtable(const OperationContext& context);
Status makeRange(const OperationContext& context);
Status scatterNd(const OperationContext& context);

// matrices.cc
Status attend(const OperationContext& context);
Status connectFully(const OperationContext& context);
Status multiplyMatrices(const OperationContext& context);

// moves.cc
Status broadcastTo(const OperationContext& context);
Status concatenate(const OperationContext& context);
Status copyBytes(const OperationContext& context);
Status pack(const OperationContext& context);
Status pad(const OperationContext& context);
Status padMirrored(const OperationContext& context);
Status reshape(const OperationContext& context);
Status resizeNearest(const OperationContext& context);
Status reverse(const OperationContext& context);
Status reverseSequence(const OperationContext& context);
Status setDiagonal(const OperationContext& context);
Status shuffleChannels(const OperationContext& context);
Status slice(const OperationContext& context);
Status spaceToBatch(const OperationContext& context);
Status spaceToDepth(const OperationContext& context);
Status split(const OperationContext& context);
Status tile(const OperationContext& context);
Status transpose(const OperationContext& context);
Status updateSlice(const OperationContext& context);

// normalizations.cc
Status normalizeGroups(const OperationContext& context);
Status normalizeInstances(const OperationContext& context);
Status normalizeLength(const OperationContext& context);
Status normalizeMeanSquare(const OperationContext& context);
Status normalizeResponse(const OperationContext& context);
Status softmax(const OperationContext& context);

// recurrent.cc
Status runLstmInBothDirections(const OperationContext& context);
Status runLstmSequence(const OperationContext& context);
Status runRnnInBothDirections(const OperationContext& context);
Status runRnnSequence(const OperationContext& context);
Status runSvdf(const OperationContext& context);
Status stepLstm(const OperationContext& context);
Status stepRnn(const OperationContext& context);

// reductions.cc
Status findLargest(const OperationContext& context);
Status findPlaces(const OperationContext& context);
Status reduce(const OperationContext& context);
Status sumSegments(const OperationContext& context);
Status sumUp(const OperationContext& context);

}  // namespace hearth::ops::reference
