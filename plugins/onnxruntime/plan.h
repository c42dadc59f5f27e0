// plan.h - finds the parts of a graph that Hone compiles, by compiling them: what a part's
// operators become shows only then. Nodes that Hone names as the reason why it refuses a part are
// left to other providers, and what remains is divided anew.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hone/base/file.h"

#include "group_model.h"
#include "settings.h"

namespace hone::ort {

// A part of a graph with its library, or with the error for which there is none.
struct Part {
  Group group;
  std::string library;  // its path
  Status failure;
};

class Planner {
 public:
  // Libraries are written into the folder, which has `files` of them. All arguments must outlive
  // the object.
  Planner(const OrtApi& api, const OrtLogger* logger, const Settings& settings,
          const TempDir& folder, int& files)
      : api_(api),
        logger_(logger),
        settings_(settings),
        folder_(folder),
        files_(files),
        weights_(api) {}
  // Returns the parts that have a library; or one without, whose error is that of the session: the
  // settings do not fit the graph, or Settings::must_compile.
  [[nodiscard]] std::vector<Part> plan(const Graph& graph);

 private:
  struct Attempt {
    std::string library;
    Status failure;
    std::vector<std::string> names;  // of the nodes in messages
  };
  [[nodiscard]] std::vector<Group> groups_of(const Graph& graph, std::vector<bool>& usable);
  [[nodiscard]] Attempt compile(const Graph& graph, const Group& group, double budget);
  [[nodiscard]] Status compile_into(const Graph& graph, const Group& group, double budget,
                                    Attempt& attempt);
  void tune(const Graph& graph, std::vector<Part>& parts);
  [[nodiscard]] std::string file_for(const Graph& graph);
  void leave_out(const Graph& graph, const Group& group, const Attempt& attempt,
                 std::vector<bool>& usable);

  const OrtApi& api_;
  const OrtLogger* logger_;
  const Settings& settings_;
  const TempDir& folder_;
  int& files_;
  Weights weights_;
  Support support_;
};

}  // namespace hone::ort
