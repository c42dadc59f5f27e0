// cost/registry.h - makes cost models by name (--cost).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hone/cost/cost_model.h"

namespace hone::cost {

enum class Use : uint8_t {
  kSearch,  // to choose among many unmeasured candidates, with trust_in_search()
  kRank,    // to order few candidates as accurately as possible
};
// Makes a model from its name, or from the path of a file that `hone train` wrote, which has a '/'
// or ends in ".model". Models that learn start from what ships with Hone. An error lists the known
// names or names the file.
[[nodiscard]] Result<std::unique_ptr<CostModel>> make_model(std::string_view name,
                                                            Use use = Use::kSearch);
// A model and its card: facts about how it was trained, for people, by name. "analytic" has none.
struct ModelWithCard {
  std::unique_ptr<CostModel> model;
  std::map<std::string, std::string> card = {};
};
[[nodiscard]] Result<ModelWithCard> make_model_with_card(std::string_view name,
                                                         Use use = Use::kSearch);
// Makes a model from the text of a file that `hone train` wrote. The name is for messages.
[[nodiscard]] Result<ModelWithCard> make_trained_model(std::string_view text, std::string_view name,
                                                       Use use = Use::kSearch);
// Returns an error if a model of this name does not know devices of the target's kind.
[[nodiscard]] Status check_knows(const CostModel& model, std::string_view name,
                                 const target::Target& target);
// Returns the model that is used by default: "combined-znver5" or the like if trees were trained on
// the same processor; "combined" if its trees were trained on the instruction set; "gpu" for a GPU;
// else "analytic".
[[nodiscard]] std::string default_model(const target::Target& target);
// Returns "combined" for trees that ship for one processor, and the name itself for others.
[[nodiscard]] std::string_view model_kind(std::string_view name);
inline constexpr std::string_view kAutoModel = "auto";  // value of --cost for the default
[[nodiscard]] std::vector<std::string> model_names();
// Returns whether make_model() treats the name as a file's.
[[nodiscard]] bool is_model_file(std::string_view name);

}  // namespace hone::cost
