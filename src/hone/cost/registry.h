// cost/registry.h - the cost models by name (--cost).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hone/cost/cost_model.h"

namespace hone::cost {

enum class Use : uint8_t {
  kSearch,  // to choose among many that nobody measured: trust_in_search()
  kRank,    // to order a few as well as it can
};
// A name, or the path of a file that `hone train` wrote: what has a '/' or ends in ".model". The
// models that learn start from what ships with Hone. An error lists the known names or names the
// file.
[[nodiscard]] Result<std::unique_ptr<CostModel>> make_model(std::string_view name,
                                                            Use use = Use::kSearch);
// The same model, and what is known of how it was made: for people, by name; "analytic" has none.
struct ModelWithCard {
  std::unique_ptr<CostModel> model;
  std::map<std::string, std::string> card = {};
};
[[nodiscard]] Result<ModelWithCard> make_model_with_card(std::string_view name,
                                                         Use use = Use::kSearch);
// What is used unless one says otherwise: trees that learned from the very processor, as
// "combined-znver5"; "combined" where its trees learned from the instruction set; else "analytic".
[[nodiscard]] std::string default_model(const target::Target& target);
// Of trees that ship for one processor what they are trained as: "combined"; of others their name.
[[nodiscard]] std::string_view model_kind(std::string_view name);
inline constexpr std::string_view kAutoModel = "auto";  // what it is called by --cost
[[nodiscard]] std::vector<std::string> model_names();
// Whether make_model() takes the name for a file's.
[[nodiscard]] bool is_model_file(std::string_view name);

}  // namespace hone::cost
