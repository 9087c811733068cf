// Reports are light or dark as the page round them is: the switch of the site says so in an attribute of its own.
const follow = () => {
  document.body.dataset.dtTheme = document.body.dataset.mdColorScheme === 'slate' ? 'dark' : 'light';
};
follow();
new MutationObserver(follow).observe(document.body, { attributeFilter: ['data-md-color-scheme'] });
