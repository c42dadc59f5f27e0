// graph/size_options.h - the sizes of a model's inputs as users give them: texts of --shape.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "hone/graph/size_form.h"

namespace hone::graph {

// The extents of inputs that have some that vary, by name; a number is a form without terms.
using InputForms = std::map<std::string, std::vector<SizeForm>>;

// The symbols of open dimensions without a name, by the rule for them (open_dims.h).
inline constexpr std::string_view kBatchSymbol = "batch", kSequenceSymbol = "sequence";

// Returns "1..8x3x160..320": the smallest and the largest of each extent.
[[nodiscard]] std::string range_text(const std::vector<SizeForm>& forms,
                                     const std::vector<SizeSymbol>& symbols);
// Returns "--shape batch=1..8", what gives a symbol its range; or, for an extent without a name, or
// with that of an input, the shape of its input, in which the rule's symbols stay:
// "--shape x=batch,3,160..320".
[[nodiscard]] std::string range_option(const SizeSymbol& symbol,
                                       const std::vector<SizeSymbol>& symbols,
                                       const InputForms& inputs);

// Returns what a form is of the symbols' sizes, such as "batch*seq" or "height*width/16". The
// symbols are sizes as users give them, of which Varying may count steps (step_of()).
[[nodiscard]] std::string form_text(const Varying& varying, const SizeForm& form);
// Returns "batch=8, height=320": symbols with these values as users give them.
[[nodiscard]] std::string run_text(const Varying& varying, const std::vector<int64_t>& symbols);

}  // namespace hone::graph
