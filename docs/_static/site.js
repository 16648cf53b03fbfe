// Pages that are opened as files cannot read each other: the search shows titles, without excerpts.
if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}

// A click on a picture that is shown smaller than it is opens it in its own size.
document.addEventListener("DOMContentLoaded", () => {
  const pictures = document.querySelectorAll(".bd-article img.only-light, .bd-article img.only-dark");
  const box = document.createElement("dialog");
  box.className = "zoom";
  box.addEventListener("click", () => box.close());
  document.body.append(box);

  const open = (picture) => {
    const copy = new Image();
    copy.src = picture.src;
    copy.alt = picture.alt;
    copy.width = picture.dataset.width;
    box.replaceChildren(copy);
    box.showModal();
  };
  const mark = (picture) => {
    // Files with points have twice the resolution at which they are meant to be shown.
    const natural = picture.src.endsWith(".svg") ? picture.naturalWidth : picture.naturalWidth / 2;
    const small = picture.clientWidth > 0 && natural > 1.1 * picture.clientWidth;
    picture.dataset.width = Math.round(natural);
    picture.classList.toggle("zoomable", small);
    if (small) {
      picture.tabIndex = 0;
      picture.setAttribute("role", "button");
    }
  };
  const markAll = () => pictures.forEach((picture) => picture.complete && mark(picture));
  for (const picture of pictures) {
    if (picture.closest("a, .sphx-glr-thumbcontainer")) continue;
    picture.addEventListener("load", () => mark(picture));
    const act = () => {
      mark(picture);
      if (picture.classList.contains("zoomable")) open(picture);
    };
    picture.addEventListener("click", act);
    picture.addEventListener("keydown", (event) => event.key === "Enter" && act());
  }
  markAll();
  window.addEventListener("resize", markAll);
  new MutationObserver(markAll).observe(document.documentElement, { attributeFilter: ["data-theme"] });
});
