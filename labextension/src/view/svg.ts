/**
 * Elements of pictures, made as those of the page are: by their attributes.
 */
const SVG = 'http://www.w3.org/2000/svg';

export function svgElement(owner: Node, tag: string, attributes: Readonly<Record<string, string>>): SVGElement {
  const element: SVGElement = (owner.ownerDocument ?? document).createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, value);
  }
  return element;
}
