// tools/hone/limits.h - the column "of limit" of kernel tables: how near a kernel comes to what the
// machine can do at best, by figures that `hone devices --measure` stored, or those of a GPU's
// description. Without figures there is no such column.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"
#include "hone/device.h"
#include "hone/options.h"
#include "hone/summary.h"

#include "table.h"

namespace hone::tool {

// The least time of some kernels, and what of the machine allows no less.
struct Limit {
  double seconds = 0;     // 0: not known
  std::string_view what;  // as Bound::what; empty for kernels that differ in it
  void add(const Limit& other);
  // "83 % of L2"; "-" if the limit or the time is not known.
  [[nodiscard]] std::string share(double seconds_taken) const;
};

class Limits {
 public:
  Limits() = default;  // no figures
  // Returns limits without figures, for a reason, which is whole sentences.
  [[nodiscard]] static Limits unknown(std::string why);
  Limits(Roofline roofline, int threads) : roofline_(std::move(roofline)), threads_(threads) {}
  // Returns those of a device in the database `db` for so many threads (0: all cores). A database
  // that was not named and cannot be read has none: whoever needs it says why.
  [[nodiscard]] static Result<Limits> load(const std::string& db, const std::string& device,
                                           int threads);
  [[nodiscard]] static Result<Limits> load(const CompileOptions& options);

  [[nodiscard]] bool known() const { return roofline_.has_value(); }
  [[nodiscard]] const std::optional<Roofline>& roofline() const { return roofline_; }
  // Returns why there are no figures, and how to get them; empty if there are some.
  [[nodiscard]] const std::string& why_unknown() const { return why_unknown_; }
  // Returns the limit of a kernel with its data in the closest cache that holds them.
  // `matrix` is as in least_time().
  [[nodiscard]] Limit of(double least_flops, double bytes, std::string_view matrix = {}) const;
  [[nodiscard]] Limit of(const TaskSummary& task) const {
    return of(task.least_flops, task.bytes, task.matrix);
  }
  // The table's header and rows get the column only where there are figures.
  [[nodiscard]] std::vector<std::string> header(std::vector<std::string> names) const;
  [[nodiscard]] std::vector<std::string> row(std::vector<std::string> cells, const Limit& limit,
                                             double seconds) const;

 private:
  std::optional<Roofline> roofline_;
  int threads_ = 1;
  std::string why_unknown_;
};

}  // namespace hone::tool
