// Shows openapi.json on the page of the HTTP API, below the header of the site.
Redoc.init(
  "../openapi.json",
  { disableSearch: true, hideDownloadButton: true, scrollYOffset: ".md-header", theme: { typography: { fontSize: "15px", fontFamily: "inherit", headings: { fontFamily: "inherit" } } } },
  document.getElementById("openapi"),
);
