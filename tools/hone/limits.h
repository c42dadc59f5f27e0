// tools/hone/limits.h - the column "of limit" of kernel tables: how near a kernel comes to what the
// machine can do at best, by figures that `hone devices --measure` stored. Without figures there is
// no such column.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hone/measure/roofline.h"
#include "hone/target/target.h"
#include "hone/tune.h"

#include "table.h"

namespace hone::tool {

class Limits {
 public:
  Limits() = default;  // no figures
  Limits(measure::Roofline roofline, int threads)
      : roofline_(std::move(roofline)), threads_(threads) {}
  // Those of a target in the database `db`, for so many threads (0: all cores). A database that
  // cannot be read has none: whoever needs it says why.
  [[nodiscard]] static Limits load(const std::string& db, const target::Target& target,
                                   int threads);
  [[nodiscard]] static Limits load(const CompileOptions& options);

  [[nodiscard]] bool known() const { return roofline_.has_value(); }
  // The least that a kernel can take, its data in the closest cache that holds them; 0: not known.
  [[nodiscard]] double seconds(double flops, double bytes) const;
  // "83 %": of what binds; "-" if that or the time is not known.
  [[nodiscard]] std::string share(double limit_seconds, double seconds) const;
  // The table's header and rows get the column only where there are figures.
  [[nodiscard]] std::vector<std::string> header(std::vector<std::string> names) const;
  [[nodiscard]] std::vector<std::string> row(std::vector<std::string> cells, double limit_seconds,
                                             double seconds) const;

 private:
  std::optional<measure::Roofline> roofline_;
  int threads_ = 1;
};

}  // namespace hone::tool
