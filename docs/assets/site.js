// Mends what the theme leaves to be desired for screen readers and keyboards. It adds some elements late, so they are mended as they come.

const LABELS = [[".md-path", "Breadcrumbs"], [".md-nav--primary .md-nav--secondary", "Sections of this page"]];

function mend() {
  for (const [selector, label] of LABELS)
    for (const landmark of document.querySelectorAll(selector)) landmark.setAttribute("aria-label", label);
  // A bar with one button is not a landmark.
  for (const bar of document.querySelectorAll(".md-code__nav:not([role])")) bar.setAttribute("role", "none");
  // The keyboard scrolls what is wider than the page.
  for (const region of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex]), .md-typeset pre > code:not([tabindex])")) region.tabIndex = 0;
}

new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
mend();
