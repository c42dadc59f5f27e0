// ir/ranges.h - the known facts about index expressions: intervals of variables and linear forms
// that are not negative.
//
// A fact is a linear form that is not negative. Intervals saturate: kNegInf and kPosInf mean
// unbounded. reset(mark) forgets everything that was added after the call of mark() that returned
// it.
#pragma once

#include <cstdint>
#include <limits>

#include "hone/ir/linear.h"

namespace hone::ir {

inline constexpr int64_t kNegInf = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kPosInf = std::numeric_limits<int64_t>::max();

struct Interval {
  int64_t lo = kNegInf;
  int64_t hi = kPosInf;  // inclusive
  [[nodiscard]] bool is_point() const { return lo == hi && lo != kNegInf && lo != kPosInf; }
  [[nodiscard]] bool empty() const { return lo > hi; }
  bool operator==(const Interval&) const = default;
};
[[nodiscard]] Interval operator+(Interval a, Interval b);
[[nodiscard]] Interval operator*(Interval a, int64_t factor);
[[nodiscard]] Interval operator*(Interval a, Interval b);
[[nodiscard]] Interval floor_div(Interval a, int64_t divisor);  // divisor > 0
[[nodiscard]] Interval intersect(Interval a, Interval b);
[[nodiscard]] Interval join(Interval a, Interval b);  // smallest interval that contains both

class Ranges {
 public:
  void bind(const VarPtr& var, Interval interval);
  // Adds the variable of a loop over min .. min+extent, as it is inside the loop's body.
  void bind_loop(const VarPtr& var, const Expr& min, const Expr& extent);
  // Adds everything that follows from a condition being true (or, if `holds` is false, false).
  // Conjuncts that compare linear forms are used; other parts, and parts with loads, are ignored.
  void assume(const Expr& condition, bool holds = true);
  void assume_nonnegative(const Linear& form);

  struct Mark {
    size_t vars, facts;
  };
  [[nodiscard]] Mark mark() const { return {vars_.size(), facts_.size()}; }
  void reset(Mark mark);

  [[nodiscard]] Interval of(const VarPtr& var) const;  // unbounded if nothing is known
  [[nodiscard]] Interval of(const Linear& form) const;
  [[nodiscard]] Interval of(const Expr& e) const;
  // Returns true if intervals and at most two facts prove that the form is not negative; false
  // means "not known".
  [[nodiscard]] bool proves_nonnegative(const Linear& form) const { return proves(form, 2); }
  [[nodiscard]] const std::vector<Linear>& facts() const { return facts_; }

 private:
  [[nodiscard]] bool proves(const Linear& form, int more_facts) const;
  [[nodiscard]] Interval of_node(const ExprNode& e) const;
  std::vector<std::pair<VarPtr, Interval>>
      vars_;  // if a variable has several entries, the last one counts
  std::vector<Linear> facts_;
};

}  // namespace hone::ir
