const rows = [...document.querySelectorAll("details.row")];
for (const button of document.querySelectorAll("[data-open]"))
  button.addEventListener("click", () => rows.forEach(row => { row.open = button.dataset.open !== ""; }));

// Browsers open a folded section whose content a link points to; older ones do not, and none scrolls to its heading.
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const row = target && target.closest("details.row");
  if (row) { row.open = true; row.scrollIntoView(); }
}
addEventListener("hashchange", openTarget);
openTarget();

// Paper cannot be unfolded: everything is open while it is printed.
let closed = [];
addEventListener("beforeprint", () => {
  closed = rows.filter(row => !row.open);
  closed.forEach(row => { row.open = true; });
});
addEventListener("afterprint", () => closed.forEach(row => { row.open = false; }));
