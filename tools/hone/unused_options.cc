#include "unused_options.h"

#include <algorithm>

#include "option_texts.h"

namespace hone::tool {

std::vector<std::string> options_of_group(const CLI::App& app, const std::string& group) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group() == group) names.push_back(option->get_name());
  }
  return names;
}

Status check_unused(const CLI::App& app, const std::vector<std::string>& options,
                    std::string_view use, std::string_view found) {
  std::vector<std::string> given;
  std::copy_if(options.begin(), options.end(), std::back_inserter(given),
               [&](const std::string& name) { return app.count(name) > 0; });
  if (given.empty()) return ok_status();
  return invalid("{}: for {}, but {}", join_names(given), use, found);
}

}  // namespace hone::tool
