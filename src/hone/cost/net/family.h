// cost/net/family.h - a family of nets with its options and the training recipe of its paper. Each
// family has a file.
#pragma once

#include <map>
#include <span>

#include "hone/base/status.h"
#include "hone/cost/net/net.h"

namespace hone::cost::net {

struct FamilyOption {
  std::string_view name;
  double value;  // default
  double lowest, highest;
  std::string_view help;
  bool whole = true;  // takes whole numbers only
};

// The options of one net, with a value for every option of the family.
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

// The default training of a family.
struct Recipe {
  std::string_view loss;  // lambdarank, pairwise, rmse or multitask
  int epochs = 50;
  int batch = 512;  // in schedules
  double rate = 7e-4, last_rate = 1e-6;
  double decay = 1e-6;
  double clip = 0.5;   // limit of the gradient's norm
  bool cosine = true;  // if false, the rate decreases linearly
  // The meta-learning that follows, a name and options of cost/net/meta.h.
  std::string_view meta = "none", meta_options = "";
};

inline constexpr std::string_view kHead[] = {"head"};

struct Family {
  std::string_view name, help;
  std::span<const FamilyOption> options;
  Recipe recipe;
  Net (*make)(const NetInputs& inputs, const Options& options);
  // Layers that adaptation to a new device changes first.
  std::span<const std::string_view> last = kHead;
};

// Returns the families by name, all that registry.cc lists.
[[nodiscard]] std::span<const Family* const> families();
[[nodiscard]] Result<const Family*> find_family(std::string_view name);
[[nodiscard]] std::vector<std::string> family_names();

// Makes a net whose parameters have no values yet. Options that are not given have their defaults;
// one that the family does not have, or out of range, is an error that lists what there is.
using GivenOptions = std::map<std::string, double, std::less<>>;
// Returns the given options together with the defaults of the others.
[[nodiscard]] Result<GivenOptions> complete_options(const Family& family,
                                                    const GivenOptions& given);
[[nodiscard]] Result<Net> make_net(const Family& family, const NetInputs& inputs,
                                   const GivenOptions& given);
// Parses "hidden=64,layers=1"; the empty text has no options.
[[nodiscard]] Result<GivenOptions> parse_options(const Family& family, std::string_view text);

// Returns what a net may read, in the order of cost/inputs.
[[nodiscard]] NetInputs all_inputs();

extern const Family kAtformer, kFasor, kLstm, kMetatune, kMha, kMlp, kSmall, kTabnet, kTlp;

}  // namespace hone::cost::net
