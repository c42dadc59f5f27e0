// cost/net/family.h - a family of nets: its options, and how its papers train it. One file each.
#pragma once

#include <map>
#include <span>

#include "hone/base/status.h"
#include "hone/cost/net/net.h"

namespace hone::cost::net {

struct FamilyOption {
  std::string_view name;
  double value;  // unless it is given
  double lowest, highest;
  std::string_view help;
  bool whole = true;  // a whole number
};

// The options of one net: every one of the family has a value.
class Options {
 public:
  explicit Options(std::map<std::string, double, std::less<>> values)
      : values_(std::move(values)) {}
  [[nodiscard]] bool has(std::string_view name) const { return values_.contains(name); }
  [[nodiscard]] double number(std::string_view name) const;
  [[nodiscard]] int64_t integer(std::string_view name) const;
  [[nodiscard]] bool flag(std::string_view name) const { return number(name) != 0; }

 private:
  std::map<std::string, double, std::less<>> values_;
};

// How a family is trained unless one says otherwise.
struct Recipe {
  std::string_view loss;  // lambdarank, pairwise, rmse or multitask
  int epochs = 50;
  int batch = 512;  // schedules
  double rate = 7e-4, last_rate = 1e-6;
  double decay = 1e-6;
  double clip = 0.5;   // of the gradient's norm
  bool cosine = true;  // else the rate falls by a straight line
};

inline constexpr std::string_view kHead[] = {"head"};

struct Family {
  std::string_view name, help;
  std::span<const FamilyOption> options;
  Recipe recipe;
  Net (*make)(const NetInputs& inputs, const Options& options);
  std::span<const std::string_view> last = kHead;  // layers: what a new device changes first
};

// By name; all that registry.cc lists.
[[nodiscard]] std::span<const Family* const> families();
[[nodiscard]] Result<const Family*> find_family(std::string_view name);
[[nodiscard]] std::vector<std::string> family_names();

// A net whose parameters have no values yet. Options that are not given have their defaults; one
// that the family does not have, or out of range, is refused with what there is.
using GivenOptions = std::map<std::string, double, std::less<>>;
// What is given, and the defaults of what is not.
[[nodiscard]] Result<GivenOptions> complete_options(const Family& family,
                                                    const GivenOptions& given);
[[nodiscard]] Result<Net> make_net(const Family& family, const NetInputs& inputs,
                                   const GivenOptions& given);
// "hidden=64,layers=1"; an empty text is none.
[[nodiscard]] Result<GivenOptions> parse_options(const Family& family, std::string_view text);

extern const Family kAtformer, kFasor, kLstm, kMha, kMlp, kSmall, kTabnet, kTlp;

}  // namespace hone::cost::net
