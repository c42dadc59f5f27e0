// ir/passes/size_limits.h - which elements of a program's buffers are not needed in a run whose
// sizes are smaller than the shapes that the program was made for.
//
// A limit of a buffer says from where on its elements are not needed. Limits are closed: what is
// needed is computed from elements that are needed, so a store to any other element may be left
// out. They are given for outputs and follow for everything else from what reads it; what cannot be
// proven has no limit. An element that decides an address, unless that is clamped, a condition, a
// loop's end or an integer quotient is always needed.
#pragma once

#include <functional>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "hone/ir/passes/index_places.h"

namespace hone::ir {

struct ParamLimit {
  size_t param = 0;  // index of Program::params
  SizeLimit limit;
  bool operator==(const ParamLimit&) const = default;
};

// Facts about a program that its statements do not tell.
struct RunFacts {
  // Returns when a condition can be true (or false): only if all of these hold.
  std::function<std::vector<Need>(const Expr& condition, bool holds, const Ranges& ranges)>
      needs_of_condition;
  // Returns the form of the size that an expression is.
  std::function<std::optional<int>(const Expr& e, const Ranges& ranges)> form_of;
  std::vector<IndexPlaces> places;
  std::vector<int64_t> multiples;  // size f is a multiple of element f, or of 1 if there is none
};

class SizeLimits {
 public:
  // `given` are limits of outputs. Those that are not closed, as needed elements are computed from
  // elements beyond them, are dropped. The sizes are an input, or null.
  SizeLimits(const Program& program, const std::vector<ParamLimit>& given,
             BufferPtr sizes = nullptr, RunFacts facts = {});

  // Returns when a store is needed: only if all of these hold.
  [[nodiscard]] std::vector<Need> needs(const StmtNode& store, const Ranges& ranges) const;
  // Returns the limits of a param, of its own or as they follow for an input.
  [[nodiscard]] std::vector<SizeLimit> of_param(const BufferPtr& buffer) const;
  // Likewise of any buffer that no loop allocates.
  [[nodiscard]] std::vector<SizeLimit> of_buffer(const BufferPtr& buffer) const;
  // Returns which indices of an input are read, in each dimension; empty intervals if it is not
  // read.
  [[nodiscard]] std::vector<Interval> indices_of_param(const BufferPtr& buffer) const;
  // Returns in which runs anything of an output is stored, or of an input read, that is needed.
  [[nodiscard]] std::vector<RunNeed> runs_of_stores(const BufferPtr& output) const;
  [[nodiscard]] std::vector<RunNeed> runs_of_loads(const BufferPtr& input) const;
  [[nodiscard]] const std::vector<int>& forms() const { return forms_; }

 private:
  // An element is needed only if `at`, in which `index_` stands for its index in the dimension, is
  // less than unit * size. Variables of loops around the buffer may occur there, too. What a store
  // in the loop `along` writes, which hands values from one iteration on to the next, has a limit
  // by the number of the iteration.
  struct Limit {
    int form = 0;
    int dimension = 0;
    Expr at;
    int64_t unit = 1;
    VarPtr along = nullptr;
  };
  // A store, with the statements around it from the outermost one on.
  struct Site {
    const StmtNode* store;
    std::vector<const StmtNode*> around;
  };
  // A load in the value of a store, with the conditions of selects under which it is evaluated. A
  // load whose index is a select is two. Or a load in the address of a store, which is needed
  // wherever the store runs.
  struct Use {
    size_t site;
    Expr load;
    std::vector<std::pair<Expr, bool>> facts;
    bool is_address = false;
  };
  using Facts = std::vector<std::pair<Expr, bool>>;

  void collect(const StmtNode& s, std::vector<const StmtNode*>& around);
  void collect_value(const Expr& e, size_t site, Facts& facts);
  void collect_load(const Expr& load, size_t site, Facts& facts);
  void collect_address(const Expr& index, size_t site);
  void pin(const Expr& e);
  void note(const BufferPtr& buffer);
  [[nodiscard]] Ranges scope_of(const Use& use) const;
  [[nodiscard]] std::vector<Need> needs_of(const Use& use, const Ranges& ranges) const;
  void add_needs_of_value(const Use& use, const Ranges& ranges, std::vector<Need>& all) const;
  [[nodiscard]] Linear place(const Limit& limit, std::span<const Expr> indices,
                             const Ranges& ranges) const;
  [[nodiscard]] bool stays_within(const Linear& own, const Limit& limit,
                                  const Ranges& ranges) const;
  [[nodiscard]] bool is_closed(const Buffer* buffer, const Limit& limit) const;
  void add_forms();
  void keep_closed();
  void infer(const Buffer* buffer, int form);
  [[nodiscard]] bool try_limit(const Buffer* buffer, Limit limit);
  void try_use(const Buffer* buffer, int form, const Use& use);
  void try_laxest(const Buffer* buffer, int form, const std::vector<Use>& uses);
  void try_carried(const Buffer* buffer, int form, const std::vector<Use>& uses);
  // Returns whether a variable is of a loop inside the allocation of a buffer.
  [[nodiscard]] bool is_inside(const Buffer* buffer, const Var* var) const;
  // `needs` are those of the use.
  [[nodiscard]] std::vector<Limit> limits_of_use(const Buffer* buffer, int form, const Use& use,
                                                 const std::vector<Need>& needs,
                                                 const Ranges& ranges) const;
  [[nodiscard]] std::vector<Limit> limits_at(const Need& need, const Linear& index,
                                             const std::function<bool(const Var*)>& is_inner,
                                             const Ranges& ranges) const;
  // In this dimension, or in any if it is -1.
  [[nodiscard]] bool has_limit(const Buffer* buffer, int form, int dimension = -1) const;

  BufferPtr sizes_;
  RunFacts facts_;
  const VarPtr index_ = make_var("index");  // in Limit::at
  std::vector<int> forms_;
  std::vector<Site> sites_;
  std::vector<const Buffer*> order_;  // buffers in the order in which they are first seen
  std::unordered_map<const Buffer*, std::vector<Use>> uses_;
  std::unordered_set<const Buffer*> pinned_;  // buffers that are needed as a whole
  std::unordered_set<const Buffer*> outputs_;
  // Variables around the allocation of a buffer; params have none.
  std::unordered_map<const Buffer*, std::unordered_set<const Var*>> scopes_;
  std::unordered_map<const Buffer*, std::vector<Limit>> limits_;
};

}  // namespace hone::ir
