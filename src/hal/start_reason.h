// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hearth::hal {

// The fixed words of StartReport::reason, which docs/settings.md explains. Other reasons name what
// changed, or begin with the word of a failure of the store.
namespace start_reason {

inline constexpr char kTooSmall[] = "too small to keep";
inline constexpr char kNoStoreYet[] = "there is no store yet";
inline constexpr char kFirstOfModel[] = "first start of this model";
inline constexpr char kFirstOfSignature[] = "first start of this signature";
inline constexpr char kOtherInBundle[] = "another model or build in the bundle";
inline constexpr char kEvicted[] = "evicted";
inline constexpr char kPlanCorrupt[] = "plan corrupt";
inline constexpr char kPlanPartly[] = "part of the plan is missing";
inline constexpr char kSegmentEvicted[] = "segment evicted";
inline constexpr char kNotInCacheFiles[] = "not in the cache files";
inline constexpr char kSegmentCorrupt[] = "segment corrupt";

}  // namespace start_reason
}  // namespace hearth::hal
