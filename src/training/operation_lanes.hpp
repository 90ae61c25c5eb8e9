// The caller's operations on a timeline: from the end of gemini_pre_op until its leases have ended.
#pragma once

#include <vector>

#include "base/timeline.hpp"
#include "training/parameter.hpp"

namespace gemini {

class OperationLanes {
 public:
  void began(Timeline& timeline, const std::vector<Parameter*>& params, gemini_phase_t phase);
  // One lease on each ended: those of the last operation on just these, or for each of the last that has it.
  void ended(Timeline& timeline, const std::vector<Parameter*>& params);

 private:
  // An operation under way, or none: then nothing is leased.
  struct Lane {
    std::vector<const Parameter*> leased;
    TimelineEvent event{TimelineEvent::Track::operations};
  };
  template <class Predicate>
  Lane* last_that(Predicate&& holds);

  std::vector<Lane> lanes_;
};

}  // namespace gemini
