#include <algorithm>
#include <memory>

#include "unmoor/backends/cpu/kernels/contract.h"
#include "unmoor/backends/cpu/kernels/families.h"
#include "unmoor/backends/cpu/kernels/operands.h"

namespace unmoor::cpu {

namespace {

// The labels of one term's axes: letters, and -1, -2, … for an ellipsis, counted from its last axis.
std::vector<int> labels_of(std::string_view term, size_t ellipsis) {
  std::vector<int> labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == ' ') continue;
    if (term[i] != '.') {
      labels.push_back(term[i]);
      continue;
    }
    for (size_t axis = ellipsis; axis > 0; --axis) labels.push_back(-static_cast<int>(axis));
    i += 2;
  }
  return labels;
}

struct Equation {
  std::vector<Labelled> operands;  // Without axes of one element, which broadcast; repeated letters are diagonals.
  std::vector<int> out;
  LabelSizes sizes;  // Greater than 1, or 0.
};

std::vector<std::vector<int>> terms_of(const OpCall& call, std::string_view left, size_t& widest) {
  std::vector<std::vector<int>> terms;
  for (size_t i = 0; i < call.input_count(); ++i) {
    const size_t comma = left.find(',');
    const std::string_view term = left.substr(0, comma);
    const size_t axes = call.input(i).shape.rank() - labels_of(term, 0).size();
    widest = std::max(widest, axes);
    terms.push_back(labels_of(term, axes));
    left.remove_prefix(comma == std::string_view::npos ? left.size() : comma + 1);
  }
  return terms;
}

// Of a call whose types were inferred, so its equation makes sense.
Equation equation_of(const OpCall& call) {
  const std::string text = call.text("equation", "");
  const size_t arrow = text.find("->");
  size_t widest = 0;
  const auto terms = terms_of(call, std::string_view(text).substr(0, arrow), widest);
  LabelSizes all;
  std::map<int, size_t> uses;
  for (size_t i = 0; i < terms.size(); ++i) {
    for (size_t axis = 0; axis < terms[i].size(); ++axis) {
      const auto dim = static_cast<size_t>(call.input(i).shape[axis]);
      size_t& size = all.emplace(terms[i][axis], 1).first->second;
      if (dim != 1) size = dim;
      ++uses[terms[i][axis]];
    }
  }
  std::vector<int> out;
  if (arrow != std::string::npos) {
    out = labels_of(std::string_view(text).substr(arrow + 2), widest);
  } else {
    for (size_t axis = widest; axis > 0; --axis) out.push_back(-static_cast<int>(axis));
    for (const auto& [label, count] : uses) {
      if (label >= 0 && count == 1) out.push_back(label);
    }
  }
  Equation equation;
  std::erase_if(out, [&](int label) { return all.at(label) == 1; });
  equation.out = std::move(out);
  for (size_t i = 0; i < terms.size(); ++i) {
    const std::vector<int64_t> steps = dense_steps(call.input(i).shape);
    Labelled operand;
    for (size_t axis = 0; axis < terms[i].size(); ++axis) {
      if (call.input(i).shape[axis] == 1) continue;
      if (!operand.has(terms[i][axis])) {
        operand.labels.push_back(terms[i][axis]);
        operand.steps.push_back(0);
      }
      operand.steps[static_cast<size_t>(std::ranges::find(operand.labels, terms[i][axis]) - operand.labels.begin())] +=
          static_cast<size_t>(steps[axis]);
    }
    equation.operands.push_back(std::move(operand));
  }
  std::erase_if(all, [](const auto& item) { return item.second == 1; });
  equation.sizes = std::move(all);
  return equation;
}

// An operand while the sum is worked out: an input, or a place in the workspace.
struct Term {
  Labelled operand;
  size_t input = 0;
  std::optional<size_t> place = std::nullopt;
  const Tensor* constant = nullptr;
};

struct Stage {
  std::vector<Term> terms;
  std::optional<size_t> place = std::nullopt;  // Of the result; the output if there is none.
  std::optional<StridedSum> sum = std::nullopt;
  std::optional<Contraction> product = std::nullopt;
  size_t scratch = 0;
};

class PreparedEinsum {
 public:
  PreparedEinsum(const Machine& machine, const OpCall& call) : machine_(machine), equation_(equation_of(call)) {
    std::vector<Term> terms;
    for (size_t i = 0; i < equation_.operands.size(); ++i)
      terms.push_back({equation_.operands[i], i, std::nullopt, call.constant(i)});
    std::vector<Term> left = terms;
    while (left.size() > 2 && join_two(left)) {
    }
    if (left.size() > 2) {  // What lies between would be too large.
      stages_.clear();
      workspace_ = 0;
      left = terms;
    }
    add_stage(left, equation_.out, std::nullopt);
  }

  size_t workspace_floats() const { return workspace_; }

  void run(const KernelArgs& args) const {
    auto* const workspace = reinterpret_cast<float*>(args.workspace.host());
    for (const Stage& stage : stages_) {
      std::vector<const float*> operands;
      for (const Term& term : stage.terms) operands.push_back(term.place ? workspace + *term.place : input_as(args, term.input));
      float* const y = stage.place ? workspace + *stage.place : output_as(args, 0);
      if (stage.product) {
        stage.product->run(operands[0], operands[1], y, workspace + stage.scratch);
      } else {
        stage.sum->run(operands, y);
      }
    }
  }

  // Whether the input is packed, so that nobody reads it.
  bool is_unused(size_t input) const {
    for (const Stage& stage : stages_) {
      for (size_t i = 0; i < stage.terms.size(); ++i) {
        const Term& term = stage.terms[i];
        if (!term.place && term.input == input) return i == 1 && stage.product && stage.product->packed_b();
      }
    }
    return false;
  }

 private:
  size_t reserve(size_t floats) {
    const size_t place = workspace_;
    workspace_ += (floats + 15) / 16 * 16;
    return place;
  }

  void add_stage(const std::vector<Term>& terms, const std::vector<int>& out, std::optional<size_t> place) {
    LabelSizes sizes;
    std::vector<Labelled> operands;
    for (const Term& term : terms) {
      operands.push_back(term.operand);
      for (const int label : term.operand.labels) sizes[label] = equation_.sizes.at(label);
    }
    Stage stage{terms, place};
    if (terms.size() == 2 && Contraction::is_worth_it(operands[0], operands[1], out, sizes)) {
      stage.product.emplace(machine_, operands[0], operands[1], out, sizes, terms[1].constant);
      stage.scratch = reserve(stage.product->workspace_floats());
    } else {
      stage.sum.emplace(machine_, operands, out, sizes);
    }
    stages_.push_back(std::move(stage));
  }

  // The labels that the product of two terms must keep for the others and the result: those of both first.
  std::vector<int> kept(const std::vector<Term>& terms, size_t a, size_t b) const {
    const auto wanted = [&](int label) {
      bool found = std::ranges::find(equation_.out, label) != equation_.out.end();
      for (size_t i = 0; i < terms.size(); ++i) found = found || (i != a && i != b && terms[i].operand.has(label));
      return found;
    };
    std::vector<int> both, one, other;
    for (const int label : terms[a].operand.labels) {
      if (wanted(label)) (terms[b].operand.has(label) ? both : one).push_back(label);
    }
    for (const int label : terms[b].operand.labels) {
      if (wanted(label) && !terms[a].operand.has(label)) other.push_back(label);
    }
    both.insert(both.end(), one.begin(), one.end());
    both.insert(both.end(), other.begin(), other.end());
    return both;
  }

  // Replaces the two terms whose product is smallest by it. False if even that is far larger than all that is given or wanted.
  bool join_two(std::vector<Term>& terms) {
    size_t best_a = 0, best_b = 1;
    double best = -1;
    double given = static_cast<double>(count_of(equation_.out, equation_.sizes));
    for (const Labelled& operand : equation_.operands) given += static_cast<double>(count_of(operand.labels, equation_.sizes));
    for (size_t a = 0; a < terms.size(); ++a) {
      for (size_t b = a + 1; b < terms.size(); ++b) {
        double size = 1;
        for (const int label : kept(terms, a, b)) size *= static_cast<double>(equation_.sizes.at(label));
        if (best >= 0 && size >= best) continue;
        best = size;
        best_a = a;
        best_b = b;
      }
    }
    if (best > 4 * given + 65536) return false;
    const std::vector<int> labels = kept(terms, best_a, best_b);
    Term made{dense_labelled(labels, equation_.sizes), 0, reserve(static_cast<size_t>(best))};
    add_stage({terms[best_a], terms[best_b]}, labels, made.place);
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(best_b));
    terms[best_a] = std::move(made);
    return true;
  }

  const Machine& machine_;
  Equation equation_;
  std::vector<Stage> stages_;
  size_t workspace_ = 0;
};

Prepared prepare_einsum(const OpCall& call, Device& device) {
  const auto einsum =
      std::make_shared<const PreparedEinsum>(machine_of(device), call);  // Shared by the copies of the function below.
  std::vector<bool> unused;
  for (size_t i = 0; i < call.input_count(); ++i) unused.push_back(einsum->is_unused(i));
  return {.run = [einsum](Stream&, const KernelArgs& args) { einsum->run(args); },
          .workspace_bytes = einsum->workspace_floats() * sizeof(float),
          .unused_inputs = unused};
}

}  // namespace

void add_einsum_kernels(KernelTable& table) {
  table.add("Einsum", {.name = "cpu.einsum.products",
                       .supports = [](const OpCall& call) { return inputs_are(call, {DType::F32}); },
                       .prepare = prepare_einsum});
}

}  // namespace unmoor::cpu
