// Fills a cell, in this process.
#pragma once

#include <memory>
#include <string>

#include "cli/catalogs.h"
#include "cli/problem_factory.h"
#include "tools/seeds/cell.h"

namespace berth::seeds {

class Player {
 public:
  // Throws nothing: what goes wrong is the cell's answer.
  Cell Play(const Question& question);

 private:
  // With its bound; kept while the next question is about the same.
  void MakeProblem(const Question& question);
  void Fill(Cell& cell) const;

  Catalogs catalogs_;
  std::string made_;  // of which problem
  std::unique_ptr<Setup> setup_;
  double bound_ = 0;  // seconds
};

// Answers questions on standard input, a line of JSON each, with cells on standard output, until the input ends: what
// Measure asks, in a process that may die, and that stays on the processor of this number.
int AnswerQuestions(int processor);

}  // namespace berth::seeds
