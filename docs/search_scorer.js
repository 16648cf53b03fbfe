// The scores of Sphinx, but pages for developers come after the others. Their own search terms and
// titles, which reach a score of 100, are exempt.
const DEVELOPERS = ["architecture", "code_of_conduct", "contributing"]
  .concat(["project", "security", "reference/core", "reference/generated/holrr.core"]);
var Scorer = {
  score: ([page, , , , score]) =>
    score < 100 && DEVELOPERS.some((start) => page.startsWith(start)) ? score - 50 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
